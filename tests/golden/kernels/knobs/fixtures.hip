// Knobs of whole kernels beyond reading: found, and followed into the launch.

// case: folder knobs/hip_transpose
// with: folder = "knobs/hip_transpose"
// see there
// want: KNOB_kTile = 32 of 8, 16, 32, 64
// want: KNOB_kRows = 8 of 2, 4, 8, 16, 32
// want: launch transpose: (ceildiv(width, KNOB_kTile), ceildiv(height, KNOB_kTile)) blocks of (KNOB_kTile, KNOB_kRows)
// want: require whole_steps: KNOB_kTile % KNOB_kRows == 0
// want: prefer a_warp_or_more: KNOB_kTile * KNOB_kRows >= 32
// want: answers block_size: KNOB_kTile != 32 or KNOB_kRows != 8
// want: answers less_shared: KNOB_kTile < 32
// want: changed: // The original, kernel.hip, with its own text and a few choices left open.
// want: changed: constexpr int kTile = KNOB_kTile, kRows = KNOB_kRows;
// want: changed: __global__ __attribute__((amdgpu_flat_work_group_size(KNOB_kTile * KNOB_kRows, KNOB_kTile * KNOB_kRows))) void
// want: note: kernel.hip keeps its own text, with its own choices open
