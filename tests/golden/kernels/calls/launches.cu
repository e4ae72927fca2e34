// Calls of several launches: what is written of each kernel, and what is left as it is.
// read: call

// case: a launch is asked only where it is made
// with: folder = "zoo/rows_int8_two_pass"
// with: moves = "lanes vector"
// with: when = "d >= 1024"
// see there
// want: moves: lanes vector
// want: launch absmax_of_rows(scale, x, d)
// want: launch codes_of_rows(codes, x, scale, d) when d >= 1024
// want: parameters: LANES_1 LANES_2 VEC_1 VEC_2
// want: require block_fits_1: LANES_1 <= device.max_threads
// want: require whole_vectors_1: d % VEC_1 == 0
// want: require block_fits_2: not (d >= 1024) or (LANES_2 <= device.max_threads)
// want: require whole_vectors_2: not (d >= 1024) or (d % VEC_2 == 0)
// want: prefer no_idle_lanes_1: LANES_1 * VEC_1 < 2 * d
// want: prefer no_idle_lanes_2: LANES_2 * VEC_2 < 2 * d

// case: a launch that no workload makes keeps its text
// with: folder = "zoo/rows_int8_two_pass"
// with: moves = "lanes"
// with: when = "d > 16000"
// see there
// want: moves: lanes
// want: note: codes_of_rows is beyond the expert: no workload makes this launch. It keeps its own text, with local moves only
// want: launch absmax_of_rows(scale, x, d)
// want: launch codes_of_rows(codes, x, scale, d) when d > 16000
// want: parameters: LANES_1
// want: require block_fits_1: LANES_1 <= device.max_threads
// want: prefer no_idle_lanes_1: LANES_1 < 2 * d

// case: a kernel beyond reading does not stop the others
// with: folder = "zoo/rows_int8_two_pass"
// with: moves = "lanes vector restrict bounds registers"
// with: edits = [["        const float q = rintf", '''
// with:         if (clock() == 7) return;
// with:         const float q = rintf''']]
// with: looks_for = ["if (clock() == 7) return;"]
// see there
// want: moves: lanes vector bounds registers restrict
// want: note: codes_of_rows is beyond the expert: line 30: clock is called, which depends on the time. It keeps its own text, with local moves only
// want: launch absmax_of_rows(scale, x, d)
// want: launch codes_of_rows(codes, x, scale, d)
// want: parameters: LANES_1 VEC_1 BOUNDS_1 RESTRICT_2 BOUNDS_2 REGS
// want: require block_fits_1: LANES_1 <= device.max_threads
// want: require whole_vectors_1: d % VEC_1 == 0
// want: prefer bounds_fit_2: BOUNDS_2 == 0 or BOUNDS_2 * 256 <= (device.threads_per_sm if device.threads_per_sm else 2048)
// want: prefer no_idle_lanes_1: LANES_1 * VEC_1 < 2 * d
// want: prefer touches_if_wide_1: BOUNDS_1 == 1 or VEC_1 >= 4 or not d % (2 * VEC_1) == 0
// want: prefer bounds_fit_1: BOUNDS_1 == 1 or BOUNDS_1 * LANES_1 <= (device.threads_per_sm if device.threads_per_sm else 2048)
// want: 1 times: if (clock() == 7) return;

// case: beside kernels that keep their text no original is left that nobody launches
// with: folder = "zoo/rows_int8_two_pass"
// with: moves = "lanes vector"
// with: edits = [["        const float q = rintf", '''
// with:         if (clock() == 7) return;
// with:         const float q = rintf'''], ["larger(most[0], 1e-10f) / 127.0f", "scaled(larger(most[0], 1e-10f))"], ['extern "C" __global__ void absmax', '''
// with: __device__ __forceinline__ float scaled(float most) { return most / 127.0f; }
// with:
// with: extern "C" __global__ void absmax'''], ["#define THREADS", '''
// with: #include <cuda_fp16.h>
// with: #define THREADS''']]
// with: looks_for = ["__global__", "absmax_of_rows(", "float scaled(", "float larger(", "#include <cuda_fp16.h>"]
// see there
// want: moves: lanes vector
// want: note: codes_of_rows is beyond the expert: line 33: clock is called, which depends on the time. It keeps its own text, with local moves only
// want: launch absmax_of_rows(scale, x, d)
// want: launch codes_of_rows(codes, x, scale, d)
// want: parameters: LANES_1 VEC_1
// want: require block_fits_1: LANES_1 <= device.max_threads
// want: require whole_vectors_1: d % VEC_1 == 0
// want: prefer no_idle_lanes_1: LANES_1 * VEC_1 < 2 * d
// want: 2 times: __global__
// want: 1 times: absmax_of_rows(
// want: 1 times: float scaled(
// want: 1 times: float larger(
// want: 1 times: #include <cuda_fp16.h>

// case: memory of the file is not copied beside kernels that may write it
// with: folder = "zoo/rows_int8_two_pass"
// with: moves = "lanes registers"
// with: edits = [["        const float q = rintf", '''
// with:         if (clock() == 7) return;
// with:         const float q = rintf'''], ["__device__ __forceinline__ float larger", '''
// with: __device__ float floor_of_scale = 1e-10f;
// with: __device__ __forceinline__ float larger'''], ["larger(most[0], 1e-10f)", "larger(most[0], floor_of_scale)"]]
// see there
// want: moves: registers
// want: lanes is refused: the kernel keeps its own text: codes_of_rows: line 31: clock is called, which depends on the time; absmax_of_rows: it shares '__device__ float floor_of_scale = 1e-10f;' with kernels that keep their text
// want: note: kernel.cu is beyond the expert: codes_of_rows: line 31: clock is called, which depends on the time; absmax_of_rows: it shares '__device__ float floor_of_scale = 1e-10f;' with kernels that keep their text. Its own text is kept, with local moves only
// want: launch absmax_of_rows(scale, x, d)
// want: launch codes_of_rows(codes, x, scale, d)
// want: parameters: REGS

// case: where no kernel is read all have local moves
// with: folder = "zoo/rows_int8_two_pass"
// with: moves = "lanes block knobs restrict bounds registers flags"
// with: edits = [["        const float q = rintf", '''
// with:         if (clock() == 7) return;
// with:         const float q = rintf'''], ["    float found = 0.0f;", "    float found = clock() == 7 ? 1.0f : 0.0f;"]]
// see there
// want: moves: knobs restrict bounds registers flags
// want: lanes is refused: the kernel keeps its own text: absmax_of_rows: line 11: clock is called, which depends on the time; codes_of_rows: line 30: clock is called, which depends on the time
// want: block is refused: absmax_of_rows: absmax_of_rows may depend on the size of its block: __shared__ is used; codes_of_rows: codes_of_rows may depend on the size of its block: __shared__ is used
// want: note: kernel.cu is beyond the expert: absmax_of_rows: line 11: clock is called, which depends on the time; codes_of_rows: line 30: clock is called, which depends on the time. Its own text is kept, with local moves only
// want: launch absmax_of_rows(scale, x, d)
// want: launch codes_of_rows(codes, x, scale, d)
// want: parameters: KNOB_THREADS RESTRICT_1 RESTRICT_2 BOUNDS_1 BOUNDS_2 REGS LEVEL
// want: prefer one_setting: (REGS != 255) + (LEVEL != 5) <= 1
// want: prefer bounds_fit_1: BOUNDS_1 == 0 or BOUNDS_1 * 1024 <= (device.threads_per_sm if device.threads_per_sm else 2048)
// want: prefer bounds_fit_2: BOUNDS_2 == 0 or BOUNDS_2 * 1024 <= (device.threads_per_sm if device.threads_per_sm else 2048)

// case: what a launch ahead reads and this one writes is not written too soon
// with: folder = "zoo/rows_int8_two_pass"
// with: moves = "lanes overlap"
// with: edits = [["codes_of_rows(signed char *codes, const float *x", "codes_of_rows(signed char *codes, float *x"], ["        const float q =", '''
// with:         x[(long long)row * d + i] = 0.0f;
// with:         const float q =''']]
// with: looks_for = ["float *x, const float *scale"]
// see there
// want: moves: lanes overlap
// want: launch absmax_of_rows(scale, x, d)
// want: launch codes_of_rows(codes, x, scale, d) when PDL_2 == 0
// want: launch codes_of_rows(codes, x, scale, d) when PDL_2 > 0 overlapping
// want: parameters: LANES_1 LANES_2 PDL_2
// want: require block_fits_1: LANES_1 <= device.max_threads
// want: require block_fits_2: LANES_2 <= device.max_threads
// want: require overlap_PDL_2: PDL_2 == 0 or device.capability >= 90
// want: prefer no_idle_lanes_1: LANES_1 < 2 * d
// want: prefer no_idle_lanes_2: LANES_2 < 2 * d
// want: 1 times: float *x, const float *scale

// case: a kernel that may overlap waits before all else
// with: folder = "zoo/rows_int8_two_pass"
// with: moves = "lanes vector hints overlap"
// with: looks_for = ["griddepcontrol.wait", "const float *scale", "const float *__restrict__ x"]
// see there
// want: moves: lanes vector hints overlap
// want: launch absmax_of_rows(scale, x, d)
// want: launch codes_of_rows(codes, x, scale, d) when PDL_2 == 0
// want: launch codes_of_rows(codes, x, scale, d) when PDL_2 > 0 overlapping
// want: parameters: LANES_1 LANES_2 VEC_1 LOAD_1 LOAD_2 VEC_2 STORE_2 PDL_2
// want: require block_fits_1: LANES_1 <= device.max_threads
// want: require whole_vectors_1: d % VEC_1 == 0
// want: require block_fits_2: LANES_2 <= device.max_threads
// want: require whole_vectors_2: d % VEC_2 == 0
// want: require overlap_PDL_2: PDL_2 == 0 or device.capability >= 90
// want: prefer no_idle_lanes_1: LANES_1 * VEC_1 < 2 * d
// want: prefer touches_if_wide_1: LOAD_1 == 0 or VEC_1 >= 4 or not d % (2 * VEC_1) == 0
// want: prefer no_idle_lanes_2: LANES_2 * VEC_2 < 2 * d
// want: prefer touches_if_wide_2: LOAD_2 == 0 and STORE_2 == 0 or VEC_2 >= 4 or not d % (2 * VEC_2) == 0
// want: prefer hints_agree_2: LOAD_2 == 0 or STORE_2 == LOAD_2 // 2
// want: 1 times: griddepcontrol.wait
// want: 1 times: const float *scale
// want: 2 times: const float *__restrict__ x

// case: launches overlap from Hopper on
// with: folder = "zoo/rows_int8_two_pass"
// with: moves = "lanes overlap"
// with: arch = "sm_80"
// see there
// want: moves: lanes
// want: overlap is refused: launches overlap on NVIDIA's GPUs alone, from sm_90 on
// want: launch absmax_of_rows(scale, x, d)
// want: launch codes_of_rows(codes, x, scale, d)
// want: parameters: LANES_1 LANES_2
// want: require block_fits_1: LANES_1 <= device.max_threads
// want: require block_fits_2: LANES_2 <= device.max_threads
// want: prefer no_idle_lanes_1: LANES_1 < 2 * d
// want: prefer no_idle_lanes_2: LANES_2 < 2 * d

// case: atomics must find what was filled
// with: folder = "zoo/scatter_add_filled"
// with: moves = "lanes fills"
// see there
// want: moves: lanes
// want: fills is refused: fill_counts fills an array, and add_to_bins adds to it in any order (atomics): it must find it filled
// want: launch fill_counts(counts, bins, nothing)
// want: launch add_to_bins(counts, bin_of, amount, n, bins)
// want: parameters: LANES_1 LANES_2
// want: require block_fits_1: LANES_1 <= device.max_threads
// want: require block_fits_2: LANES_2 <= device.max_threads
// want: prefer no_idle_lanes_1: LANES_1 < 2 * bins
// want: prefer no_idle_lanes_2: LANES_2 < 2 * n

// case: a launch that fills stays where the next is made at other sizes
// with: folder = "zoo/residual_fill_then_add"
// with: moves = "lanes fills"
// with: when = "n > 5000"
// see there
// want: moves: lanes
// want: fills is refused: fill_with fills an array, and add_weighted is not launched at the same sizes (when)
// want: launch fill_with(out, bias, n)
// want: launch add_weighted(out, a, b, weight, n) when n > 5000
// want: parameters: LANES_1 LANES_2
// want: require block_fits_1: LANES_1 <= device.max_threads
// want: require block_fits_2: not (n > 5000) or (LANES_2 <= device.max_threads)
// want: prefer no_idle_lanes_1: LANES_1 < 2 * n
// want: prefer no_idle_lanes_2: LANES_2 < 2 * n

// case: what a launch fills is taken up as a value
// with: folder = "zoo/residual_fill_then_add"
// with: moves = "lanes vector items fills"
// see there
// want: moves: fills lanes vector items
// want: note: fill_with is left out: add_weighted starts from what it would have filled in
// want: launch add_weighted(out, a, b, weight, n, bias)
// want: parameters: LANES VEC ITEMS
// want: require block_fits: LANES <= device.max_threads
// want: prefer no_idle_lanes: LANES * VEC * ITEMS < 2 * n
// want: prefer loads_under_way: VEC * ITEMS * 8 <= 256
