// Knobs of whole kernels beyond reading: found, and followed into the launch.

// case: folder knobs/argmin_pairs
// long
// with: folder = "knobs/argmin_pairs"
// see there
// want: KNOB_NT = 256 of 64, 128, 256, 512, 1024
// want: launch argmin_pairs: (rows) blocks of (KNOB_NT)
// want: answers block_size: KNOB_NT != 256
// want: answers less_shared: KNOB_NT < 256
// want: changed:     enum { NT = KNOB_NT };
// want: note: kernel.cu is beyond the expert: threads cooperate other than by totals over a row's elements: line 16: 'enum { NT = 256 }' is not understood; as tiles: 'enum { NT = 256 }' is not understood. Its own text is kept, with local moves only

// case: folder knobs/bitonic_rows
// with: folder = "knobs/bitonic_rows"
// see there
// want: KNOB_THREADS = 128 of 32, 64, 128, 256
// want: launch bitonic_rows<512>: (rows) blocks of (KNOB_THREADS)
// want: answers block_size: KNOB_THREADS != 128
// want: changed: template <int LENGTH, int THREADS = KNOB_THREADS>
// want: note: kernel.cu is beyond the expert: line 14: shared memory is used as 'row[2 * gap * (pair / gap) + pair % gap]', not as a value for every element; as tiles: line 11: a loop with barriers turns differently for different threads. Its own text is kept, with local moves only
// want: note: knobs: LENGTH (line 2) stays as it is: blocks along x are counted by LENGTH, and the grid, 'rows', does not show how it follows

// case: folder knobs/conv_halo
// long
// with: folder = "knobs/conv_halo"
// see there
// want: KNOB_BLOCK = 128 of 32, 64, 96, 128, 192, 256, 512
// want: KNOB_ITEMS = 4 of 1, 2, 4, 8, 16
// want: launch conv_halo: (ceildiv(n, KNOB_BLOCK * KNOB_ITEMS)) blocks of (KNOB_BLOCK) with (KNOB_BLOCK * KNOB_ITEMS + 2 * 8) * 4 bytes
// want: answers block_size: KNOB_BLOCK != 128
// want: answers more_blocks: KNOB_ITEMS < 4
// want: answers rows_per_block: KNOB_ITEMS > 4
// want: changed: #define BLOCK KNOB_BLOCK
// want: changed: #undef ITEMS
// want: changed: #define ITEMS KNOB_ITEMS
// want: note: kernel.cu keeps its own text, with its own choices open
// want: note: knobs: RADIUS (line 10) stays as it is: it is defined in conv_sizes.cuh, whose text is not changed

// case: folder knobs/dot_two_steps
// with: folder = "knobs/dot_two_steps"
// see there
// want: KNOB_BLOCK = 256 of 64, 128, 256, 512, 1024
// want: launch dot_parts: (512) blocks of (KNOB_BLOCK)
// want: launch dot_total: (1) blocks of (KNOB_BLOCK)
// want: answers block_size: KNOB_BLOCK != 256
// want: changed: constexpr unsigned int BLOCK = (KNOB_BLOCK + 0u);
// want: note: kernel.cu keeps its own text, with its own choices open
// want: note: knobs: GRID_X of the launch stays as it is: it is an extent of parts of the problem

// case: folder knobs/histogram_private
// long
// with: folder = "knobs/histogram_private"
// see there
// want: KNOB_THREADS = 128 of 32, 64, 96, 128, 192, 256, 512
// want: KNOB_PER_THREAD = 16 of 4, 8, 16, 32, 64
// want: KNOB_UNROLL = 4 of 1, 2, 4, 8, 16
// want: launch histogram_private: (ceildiv(n, KNOB_THREADS * KNOB_PER_THREAD)) blocks of (KNOB_THREADS)
// want: answers block_size: KNOB_THREADS != 128
// want: answers more_blocks: KNOB_PER_THREAD < 16
// want: answers unroll: KNOB_UNROLL > 1
// want: answers rows_per_block: KNOB_PER_THREAD > 16
// want: changed: #define THREADS KNOB_THREADS
// want: changed: #define PER_THREAD KNOB_PER_THREAD
// want: changed: #pragma unroll KNOB_UNROLL
// want: note: kernel.cu is beyond the expert: line 18: a branch depends on the thread and on a size at once; as tiles: threads of a block cooperate other than by tiles. Its own text is kept, with local moves only
// want: note: knobs: BINS (line 2) stays as it is: by its name (bins) it is part of what is computed

// case: folder knobs/nbody_tile
// long
// with: folder = "knobs/nbody_tile"
// see there
// want: KNOB_TILE = 64 of 32, 64, 96, 128, 256
// want: KNOB_UNROLL = 4 of 1, 2, 4, 8, 16
// want: launch nbody_tile: (ceildiv(n, KNOB_TILE)) blocks of (KNOB_TILE)
// want: answers block_size: KNOB_TILE != 64
// want: answers less_shared: KNOB_TILE < 64
// want: answers unroll: KNOB_UNROLL > 1
// want: changed: constexpr int TILE = KNOB_TILE;  // bodies, and threads
// want: changed: #pragma unroll KNOB_UNROLL
// want: note: kernel.cu keeps its own text, with its own choices open

// case: folder knobs/row_moments
// long
// with: folder = "knobs/row_moments"
// see there
// want: KNOB_BLOCK_THREADS = 256 of 64, 128, 256, 512, 1024
// want: KNOB_ITEMS = 1 of 1, 2, 4
// want: launch row_moments<{KNOB_BLOCK_THREADS}, {KNOB_ITEMS}>: (rows) blocks of (KNOB_BLOCK_THREADS)
// want: answers block_size: KNOB_BLOCK_THREADS != 256
// want: answers items_in_flight: KNOB_ITEMS > 1
// want: note: kernel.cu is beyond the expert: the structure BlockSum is not understood: its field `Storage &storage_;` is not understood (line 3). Its own text is kept, with local moves only

// case: folder knobs/scan_rows
// long
// with: folder = "knobs/scan_rows"
// see there
// want: KNOB_BLOCK = 256 of 64, 128, 256, 512, 1024
// want: launch scans::scan_rows: (rows) blocks of (KNOB_BLOCK)
// want: answers block_size: KNOB_BLOCK != 256
// want: answers less_shared: KNOB_BLOCK < 256
// want: changed:     static constexpr int BLOCK = KNOB_BLOCK;  // threads
// want: note: kernel.cu is beyond the expert: threads cooperate other than by totals over a row's elements: line 28: __syncthreads inside a loop over elements; as tiles: line 13: not every thread of a block comes to the barrier. Its own text is kept, with local moves only

// case: folder knobs/sgemm_blocked
// with: folder = "knobs/sgemm_blocked"
// see there
// want: KNOB_BM = 32 of 8, 16, 32, 64, 128
// want: KNOB_BN = 32 of 8, 16, 32, 64, 128
// want: KNOB_BK = 8 of 2, 4, 8, 16, 32
// want: KNOB_TM = 2 of 1, 2, 4, 8
// want: KNOB_TN = 2 of 1, 2, 4, 8
// want: launch sgemm_blocked<{KNOB_BM}, {KNOB_BN}, {KNOB_BK}, {KNOB_TM}, {KNOB_TN}>: (ceildiv(n, KNOB_BN), ceildiv(m, KNOB_BM)) blocks of (KNOB_BM // KNOB_TM * (KNOB_BN // KNOB_TN))
// want: require asserted: KNOB_BM // KNOB_TM * (KNOB_BN // KNOB_TN) % KNOB_BK == 0 and KNOB_BM // KNOB_TM * (KNOB_BN // KNOB_TN) % KNOB_BN == 0
// want: require asserted_2: KNOB_BM % (KNOB_BM // KNOB_TM * (KNOB_BN // KNOB_TN) // KNOB_BK) == 0
// want: require divides: KNOB_BM // KNOB_TM * (KNOB_BN // KNOB_TN) % KNOB_BK == 0
// want: prefer a_warp_or_more: KNOB_BM // KNOB_TM * (KNOB_BN // KNOB_TN) >= 32
// want: answers more_blocks: KNOB_BM < 32 or KNOB_BN < 32
// want: answers rows_per_block: KNOB_BM > 32 or KNOB_BN > 32
// want: answers less_shared: KNOB_BM < 32 or KNOB_BN < 32 or KNOB_BK < 8
// want: answers items_in_flight: KNOB_BK > 8 or KNOB_TM > 2 or KNOB_TN > 2
// want: note: kernel.cu is beyond the expert: line 16: shared memory is used as 'As[i % 8][i / 8]', not as a value for every element; as tiles: the threads of a block do not come to every element of a box once. Its own text is kept, with local moves only

// case: folder knobs/stencil_tile
// long
// with: folder = "knobs/stencil_tile"
// see there
// want: KNOB_TX = 16 of 4, 8, 16, 32, 64
// want: KNOB_TY = 16 of 4, 8, 16, 32, 64
// want: launch stencil_tile: ((nx + (KNOB_TX - 1)) // KNOB_TX, (ny + (KNOB_TY - 1)) // KNOB_TY) blocks of (KNOB_TX, KNOB_TY)
// want: prefer a_warp_or_more: KNOB_TX * KNOB_TY >= 32
// want: answers block_size: KNOB_TX != 16 or KNOB_TY != 16
// want: answers less_shared: KNOB_TX < 16 or KNOB_TY < 16
// want: changed: #define TX KNOB_TX
// want: changed: #define TY KNOB_TY
// want: note: kernel.cu keeps its own text, with its own choices open
// want: note: knobs: RADIUS (line 8) stays as it is: by its name (radius) it is part of what is computed

// case: folder knobs/transpose_padded
// with: folder = "knobs/transpose_padded"
// see there
// want: KNOB_TILE_DIM = 32 of 8, 16, 32, 64
// want: KNOB_BLOCK_ROWS = 8 of 2, 4, 8, 16, 32
// want: launch transpose_padded: (ceildiv(width, KNOB_TILE_DIM), ceildiv(height, KNOB_TILE_DIM)) blocks of (KNOB_TILE_DIM, KNOB_BLOCK_ROWS)
// want: require whole_steps: KNOB_TILE_DIM % KNOB_BLOCK_ROWS == 0
// want: prefer a_warp_or_more: KNOB_TILE_DIM * KNOB_BLOCK_ROWS >= 32
// want: answers block_size: KNOB_TILE_DIM != 32 or KNOB_BLOCK_ROWS != 8
// want: answers less_shared: KNOB_TILE_DIM < 32
// want: changed: #define TILE_DIM KNOB_TILE_DIM
// want: changed: #define BLOCK_ROWS KNOB_BLOCK_ROWS
// want: note: kernel.cu keeps its own text, with its own choices open
