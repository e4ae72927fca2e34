// Types that follow a template argument, which follows a size.
// read: call
// with: base = "norms"
// with: moves = "lanes tasks vector"

// case: a size with one value is a number that types may depend on
// with: contract = { d = { one_of = [8] } }
template <typename T, int N> struct vec {
    T e[N];
    __device__ void load(const T *p) { for (int i = 0; i < N; ++i) e[i] = p[i]; }
    __device__ float squares() const { float s = 0; for (int i = 0; i < N; ++i) s += e[i] * e[i]; return s; }
};
template <int D> __global__ void norms(const float *x, float *out, int rows) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    vec<float, D> v;
    v.load(x + row * D);
    out[row] = v.squares();
}
// want: moves: lanes
// want: tasks is refused: the whole grid works on one task: there are none to put side by side
// want: vector is refused: x is accessed 32 bytes at once already, of 16 that one access has
// want: launch norms(x, out, rows)
// want: parameters: LANES
// want: require block_fits: LANES <= device.max_threads
// want: prefer no_idle_lanes: LANES < 2 * rows

// case: types may depend on the value that all workloads have
template <typename T, int N> struct vec {
    T e[N];
    __device__ void load(const T *p) { for (int i = 0; i < N; ++i) e[i] = p[i]; }
    __device__ float squares() const { float s = 0; for (int i = 0; i < N; ++i) s += e[i] * e[i]; return s; }
};
template <int D> __global__ void norms(const float *x, float *out, int rows) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    vec<float, D> v;
    v.load(x + row * D);
    out[row] = v.squares();
}
// want: moves: lanes
// want: tasks is refused: the whole grid works on one task: there are none to put side by side
// want: vector is refused: x is accessed 32 bytes at once already, of 16 that one access has
// want: note: its types depend on a size of its entry: it is read for d = 8 alone
// want: launch norms(x, out, rows)
// want: parameters: LANES
// want: require block_fits: LANES <= device.max_threads
// want: require only_d: d == 8
// want: prefer no_idle_lanes: LANES < 2 * rows

// case: types may not depend on a size with several values
// with: workloads = { one = { rows = 64, d = 8 }, two = { rows = 64, d = 16 } }
template <typename T, int N> struct vec {
    T e[N];
    __device__ void load(const T *p) { for (int i = 0; i < N; ++i) e[i] = p[i]; }
    __device__ float squares() const { float s = 0; for (int i = 0; i < N; ++i) s += e[i] * e[i]; return s; }
};
template <int D> __global__ void norms(const float *x, float *out, int rows) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    vec<float, D> v;
    v.load(x + row * D);
    out[row] = v.squares();
}
// want: declined: kernel.cu is beyond the expert: the template argument D for N is no integer that is known here. Its own text is kept, with local moves only, and none applies (lanes: the kernel keeps its own text: the template argument D for N is no integer that is known here; tasks: the kernel keeps its own text: the template argument D for N is no integer that is known here; vector: the kernel keeps its own text: the template argument D for N is no integer that is known here)
