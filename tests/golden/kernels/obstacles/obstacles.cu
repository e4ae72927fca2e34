// What stands in the way of a reading: all of it, with lines.

// case: every obstacle is told with its line and what would have to change
struct B {}; struct S : B { float a; __device__ float go() { return a; } };
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
unsigned l; asm("mov.u32 %0, %%laneid;" : "=r"(l));
        S s; float v = s.go();
        v += far_away(v);
        long long t = clock64();
        out[threadIdx.x] = v * t * l;
}
// want: kernel.cu is beyond the expert: the structure S is not understood: it inherits (line 1) (to change: a plainer structure: fields, and methods that set or read them)
// want:   also line 3: 'asm("mov.u32 %0, %%laneid;" : "=r"(l));' is not understood, and it contains assembly that reads %laneid (to change: use the intrinsic for it, or a helper whose instructions only compute)
// want:   also line 5: far_away is called, whose text is not in the file (to change: put its text into the file)
// want:   also line 6: clock64 is called, which depends on the time (to change: leave it out, or compute it from threadIdx and blockIdx)

// case: a vote is among the obstacles
__device__ float helper(float v) { int some; return __ballot_sync(0xffffffffu, v > 0); }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
int some = 0; float v = x[threadIdx.x];
        v += far_away(v);
        v += helper(v) + __ballot_sync(0xffffffffu, v > 0);
        out[threadIdx.x] = v;
}
// want: kernel.cu is beyond the expert: line 4: far_away is called, whose text is not in the file (to change: put its text into the file)
// want:   also line 1: __ballot_sync depends on other threads of the warp (to change: leave it out, or compute it from threadIdx and blockIdx)
// want:   also line 5: __ballot_sync depends on other threads of the warp (to change: leave it out, or compute it from threadIdx and blockIdx)

// case: a vote is among the obstacles (2)
__device__ float helper(float v) { int some; return __any_sync(0xffffffffu, v > 0); }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
int some = 0; float v = x[threadIdx.x];
        v += far_away(v);
        v += helper(v) + __any_sync(0xffffffffu, v > 0);
        out[threadIdx.x] = v;
}
// want: kernel.cu is beyond the expert: line 4: far_away is called, whose text is not in the file (to change: put its text into the file)
// want:   also line 1: __any_sync depends on other threads of the warp (to change: leave it out, or compute it from threadIdx and blockIdx)
// want:   also line 5: __any_sync depends on other threads of the warp (to change: leave it out, or compute it from threadIdx and blockIdx)

// case: a vote is among the obstacles (3)
__device__ float helper(float v) { int some; return __all_sync(0xffffffffu, v > 0); }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
int some = 0; float v = x[threadIdx.x];
        v += far_away(v);
        v += helper(v) + __all_sync(0xffffffffu, v > 0);
        out[threadIdx.x] = v;
}
// want: kernel.cu is beyond the expert: line 4: far_away is called, whose text is not in the file (to change: put its text into the file)
// want:   also line 1: __all_sync depends on other threads of the warp (to change: leave it out, or compute it from threadIdx and blockIdx)
// want:   also line 5: __all_sync depends on other threads of the warp (to change: leave it out, or compute it from threadIdx and blockIdx)

// case: a vote is among the obstacles (4)
__device__ float helper(float v) { int some; return __match_any_sync(0xffffffffu, (int)v); }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
int some = 0; float v = x[threadIdx.x];
        v += far_away(v);
        v += helper(v) + __match_any_sync(0xffffffffu, (int)v);
        out[threadIdx.x] = v;
}
// want: kernel.cu is beyond the expert: line 4: far_away is called, whose text is not in the file (to change: put its text into the file)
// want:   also line 1: __match_any_sync depends on other threads of the warp (to change: leave it out, or compute it from threadIdx and blockIdx)
// want:   also line 5: __match_any_sync depends on other threads of the warp (to change: leave it out, or compute it from threadIdx and blockIdx)

// case: a vote is among the obstacles (5)
__device__ float helper(float v) { int some; return __match_all_sync(0xffffffffu, (int)v, &some); }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
int some = 0; float v = x[threadIdx.x];
        v += far_away(v);
        v += helper(v) + __match_all_sync(0xffffffffu, (int)v, &some);
        out[threadIdx.x] = v;
}
// want: kernel.cu is beyond the expert: line 4: far_away is called, whose text is not in the file (to change: put its text into the file)
// want:   also line 1: __match_all_sync depends on other threads of the warp (to change: leave it out, or compute it from threadIdx and blockIdx)
// want:   also line 5: __match_all_sync depends on other threads of the warp (to change: leave it out, or compute it from threadIdx and blockIdx)

// case: a vote is among the obstacles (6)
__device__ float helper(float v) { int some; return __reduce_add_sync(0xffffffffu, (int)v); }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
int some = 0; float v = x[threadIdx.x];
        v += far_away(v);
        v += helper(v) + __reduce_add_sync(0xffffffffu, (int)v);
        out[threadIdx.x] = v;
}
// want: kernel.cu is beyond the expert: line 4: far_away is called, whose text is not in the file (to change: put its text into the file)
// want:   also line 1: __reduce_add_sync depends on other threads of the warp (to change: leave it out, or compute it from threadIdx and blockIdx)
// want:   also line 5: __reduce_add_sync depends on other threads of the warp (to change: leave it out, or compute it from threadIdx and blockIdx)

// case: a vote is among the obstacles (7)
__device__ float helper(float v) { int some; return __activemask(); }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
int some = 0; float v = x[threadIdx.x];
        v += far_away(v);
        v += helper(v) + __activemask();
        out[threadIdx.x] = v;
}
// want: kernel.cu is beyond the expert: line 4: far_away is called, whose text is not in the file (to change: put its text into the file)
// want:   also line 1: __activemask depends on other threads of the warp (to change: leave it out, or compute it from threadIdx and blockIdx)
// want:   also line 5: __activemask depends on other threads of the warp (to change: leave it out, or compute it from threadIdx and blockIdx)

// case: obstacles have the names of the source
struct Two { float a, b; __device__ Two(float v) : a(v), b(v) {} };
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
Two t(x[0]); for (int i = threadIdx.x; i < d; i += 256) { t.a = x[i] - t.a; out[i] = t.a; }
}
// want: kernel.cu is beyond the expert: line 3: 't.a' is carried from one element to the next in a way that is no sum, product, maximum or minimum

// case: a kernel with one obstacle has no others
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
out[threadIdx.x] = x[0] * clock64();
}
// want: kernel.cu is beyond the expert: line 2: clock64 is called, which depends on the time (to change: leave it out, or compute it from threadIdx and blockIdx)
