// Knobs of whole kernels beyond reading: found, and followed into the launch.

// case: folder knobs/cl_matmul_tile
// with: folder = "knobs/cl_matmul_tile"
// see there
// want: KNOB_TILE = 8 of 2, 4, 6, 8, 12, 16, 32
// want: launch matmul_tile: (ceildiv(n, KNOB_TILE), ceildiv(m, KNOB_TILE)) blocks of (KNOB_TILE, KNOB_TILE)
// want: answers block_size: KNOB_TILE != 8
// want: answers less_shared: KNOB_TILE < 8
// want: changed: // The original, kernel.cl, with its own text and a few choices left open.
// want: changed: #define TILE KNOB_TILE
// want: changed: __kernel __attribute__((reqd_work_group_size(KNOB_TILE, KNOB_TILE, 1)))
// want: note: kernel.cl keeps its own text, with its own choices open

// case: folder knobs/cl_scan_chunks
// with: folder = "knobs/cl_scan_chunks"
// see there
// want: KNOB_CHUNK = 64 of 16, 32, 64, 128, 256
// want: launch scan_chunks: (rows) blocks of (KNOB_CHUNK)
// want: answers block_size: KNOB_CHUNK != 64
// want: answers less_shared: KNOB_CHUNK < 64
// want: changed: // The original, kernel.cl, with its own text and a few choices left open.
// want: changed: enum { CHUNK = KNOB_CHUNK };
// want: note: kernel.cl is beyond the expert: threads cooperate other than by totals over a row's elements: line 10: __syncthreads inside a loop over elements; as tiles: line 14: not every thread of a block comes to the barrier. Its own text is kept, with local moves only
