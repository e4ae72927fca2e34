// Calls that are put in place, and those that have to stay.

// case: a reduction works on the variable itself
__device__ float warp_sum(float x) {
        for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(~0u, x, step);
        return x;
    }
__global__ void k(float *p, const float *q, int n)
{
float sum = q[0]; sum = warp_sum(sum); p[0] = sum;
}
// want: float sum = q[0];
// want: for (int step = 16; step > 0; step /= 2)
// want:     sum += __shfl_xor_sync(~0u, sum, step);
// want: p[0] = sum;

// case: a copy is made where the argument is another
__device__ float add(float x, int n) { x += __shfl_xor_sync(~0u, x, n); return x; }
__global__ void k(float *p, const float *q, int n)
{
float x = q[0]; p[0] = add(q[1], n) + x;
}
// want: float x = q[0];
// want: float x_2 = q[1];
// want: x_2 += __shfl_xor_sync(~0u, x_2, n);
// want: p[0] = x_2 + x;

// case: names of the function do not meet those of the kernel
__device__ void f(float *to, int i) {
        const int n = i * 2;
        for (int j = 0; j < n; j++) to[j] = i;
    }
__global__ void k(float *p, const float *q, int n)
{
int i = 3; for (int j = 0; j < n; j++) f(p + j, i);
}
// want: int i = 3;
// want: for (int j = 0; j < n; j++) {
// want:     float *to = p + j;
// want:     const int n_2 = i * 2;
// want:     for (int j_2 = 0; j_2 < n_2; j_2++)
// want:         to[j_2] = i;
// want: }

// case: an argument that changes meanwhile is copied
__device__ void f(float &a, float b) { a = b * 2; a += b; }
__global__ void k(float *p, const float *q, int n)
{
float x = q[0]; f(x, x); p[0] = x;
}
// want: float x = q[0];
// want: const float b = x;
// want: x = b * 2;
// want: x += b;
// want: p[0] = x;

// case: a reference is the place itself
template <typename T> __device__ void put(T &to, float x) { to = (T)x; }
__global__ void k(const float *q)
{
uint4 v; put(((__half *)&v)[3], q[0]);
}
// want: uint4 v;
// want: const float x = q[0];
// want: ((__half *)&v)[3] = (__half)x;

// case: a function that is one expression becomes one
template <typename T> __device__ float load(const T *x, int i) { return static_cast<float>(x[i]); }
__global__ void k(float *p, const float *q, int n)
{
p[0] = n > 0 ? load(q, n + 1) : 0.0f;
}
// want: p[0] = n > 0 ? (float)q[n + 1] : 0.0f;

// case: static functions of an operation are put in place
struct Max { static __device__ float apply(float a, float b) { return fmaxf(a, b); } };
template <typename Op> __device__ float reduce(float x)
{
    return Op::apply(x, __shfl_xor_sync(~0u, x, 1));
}
__global__ void k(float *p, const float *q, int n)
{
float m = q[n]; m = reduce<Max>(m); p[n] = m;
}
// want: float m = q[n];
// want: const float reduce_result = fmaxf(m, __shfl_xor_sync(~0u, m, 1));
// want: m = reduce_result;
// want: p[n] = m;

// case: early returns become branches
__device__ void f(float *to, int i)
{
    if (i < 0) return;
    to[i] = 1;
    if (i > 5) { to[0] = 2; return; }
    to[1] = 3;
}
__device__ float g(const float *from, int i) { if (i < 0) return 0.0f; else { return from[i]; } }
__global__ void k(float *p, const float *q, int n)
{
f(p, n); p[2] = g(q, n);
}
// want: if (!(n < 0)) {
// want:     p[n] = 1;
// want:     if (n > 5)
// want:         p[0] = 2;
// want:     else
// want:         p[1] = 3;
// want: }
// want: float g_result;
// want: if (n < 0)
// want:     g_result = 0.0f;
// want: else
// want:     g_result = q[n];
// want: p[2] = g_result;

// case: shared memory of a function exists once
__device__ float sum(float x) {
        __shared__ float parts[32];
        parts[threadIdx.x] = x;
        __syncthreads();
        return parts[0];
    }
__global__ void k(float *p, const float *q, int n)
{
p[0] = sum(q[0]); p[1] = sum(q[1]);
}
// want: __shared__ float sum_parts[32];
// want: const float x = q[0];
// want: sum_parts[threadIdx.x] = x;
// want: __syncthreads();
// want: const float sum_result = sum_parts[0];
// want: p[0] = sum_result;
// want: const float x_2 = q[1];
// want: sum_parts[threadIdx.x] = x_2;
// want: __syncthreads();
// want: const float sum_result_2 = sum_parts[0];
// want: p[1] = sum_result_2;

// case: templates take their types from the arguments
template <typename T, int N> struct Other;
template <int N, typename T> __device__ void fill(T *to, T x)
{
    for (int i = 0; i < N; i++) to[i] = x;
    T last = x;
}
__global__ void k(__half *p, float *q)
{
__half h = __float2half(q[0]); fill<4>(p, h);
}
// want: __half h = __float2half(q[0]);
// want: for (int i = 0; i < 4; i++)
// want:     p[i] = h;
// want: __half last = h;

// case: overloads are distinguished by types
__device__ void put(float &to, float x) { to = x; }
__device__ void put(__half &to, float x) { to = __float2half(x); }
__global__ void k(__half *p, const float *q)
{
put(p[0], q[0]);
}
// want: const float x = q[0];
// want: p[0] = __float2half(x);

// case: an overload that is as good everywhere and better somewhere
__device__ float other(float x, int lane) { return __shfl_xor_sync(~0u, x, lane); }
__device__ __half2 other(__half2 x, int lane) { return __shfl_xor_sync(~0u, x, lane); }
__global__ void k(float *p, const float *q, int n)
{
unsigned int lane = n; p[0] = other(q[0], lane);
}
// want: unsigned int lane = n;
// want: p[0] = __shfl_xor_sync(~0u, q[0], (int)lane);

// case: overloads that the language would weigh are not told apart
__device__ float other(float x, int lane) { return __shfl_xor_sync(~0u, x, lane); }
__device__ __half2 other(__half2 x, int lane) { return __shfl_xor_sync(~0u, x, lane); }
__device__ float other(float x, short lane) { return __shfl_xor_sync(~0u, x, 2); }
__global__ void k(float *p, const float *q, int n)
{
unsigned int lane = n; p[0] = other(q[0], lane);
}
// want: unsigned int lane = n;
// want: p[0] = other(q[0], lane);
// want: note: line 6: other stays a call: which other is called cannot be told from its arguments

// case: overloads that the language would weigh are not told apart (2)
__device__ float other(float x, int lane) { return __shfl_xor_sync(~0u, x, lane); }
__device__ __half2 other(__half2 x, int lane) { return __shfl_xor_sync(~0u, x, lane); }
__device__ float other(float x, unsigned int lane, int k = 0) { return __shfl_sync(~0u, x, k); }
__global__ void k(float *p, const float *q, int n)
{
unsigned int lane = n; p[0] = other(q[0], lane);
}
// want: unsigned int lane = n;
// want: p[0] = other(q[0], lane);
// want: note: line 6: other stays a call: which other is called cannot be told from its arguments

// case: a template that counts is put in place
template <class A, class B> __device__ A up(const A x, const B y) { return (x + y - 1) / y; }
__global__ void k(float *p, const float *q, int n)
{
int m = up(n, 8); p[m] = up(q[0], 2.0f);
}
// want: int m = (n + 8 - 1) / 8;
// want: p[m] = up(q[0], 2.0f);

// case: what is written for one type goes before the template
template <typename T> __device__ void put(T *to, float x) { to[0] = x; }
template <> __device__ void put(__half *to, float x) { to[0] = __float2half(x); }
template <>
__device__ void put<__nv_bfloat16>(__nv_bfloat16 *to, float x) { to[0] = __float2bfloat16(x); }
__global__ void k(__half *p)
{
put(p, 2.0f);
}
// want: p[0] = __float2half(2.0f);

// case: what is written for one type goes before the template (2)
template <typename T> __device__ void put(T *to, float x) { to[0] = x; }
template <> __device__ void put(__half *to, float x) { to[0] = __float2half(x); }
template <>
__device__ void put<__nv_bfloat16>(__nv_bfloat16 *to, float x) { to[0] = __float2bfloat16(x); }
__global__ void k(__half *p)
{
put<__half>(p, 2.0f);
}
// want: p[0] = __float2half(2.0f);

// case: what is written for one type goes before the template (3)
template <typename T> __device__ void put(T *to, float x) { to[0] = x; }
template <> __device__ void put(__half *to, float x) { to[0] = __float2half(x); }
template <>
__device__ void put<__nv_bfloat16>(__nv_bfloat16 *to, float x) { to[0] = __float2bfloat16(x); }
__global__ void k(__nv_bfloat16 *p)
{
put(p, 2.0f);
}
// want: p[0] = __float2bfloat16(2.0f);

// case: what is written for one type goes before the template (4)
template <typename T> __device__ void put(T *to, float x) { to[0] = x; }
template <> __device__ void put(__half *to, float x) { to[0] = __float2half(x); }
template <>
__device__ void put<__nv_bfloat16>(__nv_bfloat16 *to, float x) { to[0] = __float2bfloat16(x); }
__global__ void k(__nv_bfloat16 *p)
{
put<__nv_bfloat16>(p, 2.0f);
}
// want: p[0] = __float2bfloat16(2.0f);

// case: what is written for one type goes before the template (5)
template <typename T> __device__ void put(T *to, float x) { to[0] = x; }
template <> __device__ void put(__half *to, float x) { to[0] = __float2half(x); }
template <>
__device__ void put<__nv_bfloat16>(__nv_bfloat16 *to, float x) { to[0] = __float2bfloat16(x); }
__global__ void k(int *p)
{
put(p, 2.0f);
}
// want: p[0] = 2.0f;

// case: what is written for one type goes before the template (6)
template <typename T> __device__ void put(T *to, float x) { to[0] = x; }
template <> __device__ void put(__half *to, float x) { to[0] = __float2half(x); }
template <>
__device__ void put<__nv_bfloat16>(__nv_bfloat16 *to, float x) { to[0] = __float2bfloat16(x); }
__global__ void k(int *p)
{
put<int>(p, 2.0f);
}
// want: p[0] = 2.0f;

// case: what a declared template is written for
enum class Way { PLAIN, TWICE = 4, THRICE };
template <int Bytes, Way way = Way::PLAIN> __device__ void put(void *to, float x);
template <> __device__ void put<4>(void *to, float x) { ((float *)to)[0] = x; }
template <> __device__ void put<8>(void *to, float x) { ((double *)to)[0] = x; }
template <> __device__ void put<4, Way::THRICE>(void *to, float x) { ((float *)to)[0] = 3 * x; }
__global__ void k(float *p, const float *q, int n)
{
put<4>(p, 2.0f);
}
// want: void *to = p;
// want: ((float *)to)[0] = 2.0f;

// case: what a declared template is written for (2)
enum class Way { PLAIN, TWICE = 4, THRICE };
template <int Bytes, Way way = Way::PLAIN> __device__ void put(void *to, float x);
template <> __device__ void put<4>(void *to, float x) { ((float *)to)[0] = x; }
template <> __device__ void put<8>(void *to, float x) { ((double *)to)[0] = x; }
template <> __device__ void put<4, Way::THRICE>(void *to, float x) { ((float *)to)[0] = 3 * x; }
__global__ void k(float *p, const float *q, int n)
{
put<2 * 2>(p, 2.0f);
}
// want: void *to = p;
// want: ((float *)to)[0] = 2.0f;

// case: what a declared template is written for (3)
enum class Way { PLAIN, TWICE = 4, THRICE };
template <int Bytes, Way way = Way::PLAIN> __device__ void put(void *to, float x);
template <> __device__ void put<4>(void *to, float x) { ((float *)to)[0] = x; }
template <> __device__ void put<8>(void *to, float x) { ((double *)to)[0] = x; }
template <> __device__ void put<4, Way::THRICE>(void *to, float x) { ((float *)to)[0] = 3 * x; }
__global__ void k(float *p, const float *q, int n)
{
put<4, Way::PLAIN>(p, 2.0f);
}
// want: void *to = p;
// want: ((float *)to)[0] = 2.0f;

// case: what a declared template is written for (4)
enum class Way { PLAIN, TWICE = 4, THRICE };
template <int Bytes, Way way = Way::PLAIN> __device__ void put(void *to, float x);
template <> __device__ void put<4>(void *to, float x) { ((float *)to)[0] = x; }
template <> __device__ void put<8>(void *to, float x) { ((double *)to)[0] = x; }
template <> __device__ void put<4, Way::THRICE>(void *to, float x) { ((float *)to)[0] = 3 * x; }
__global__ void k(float *p, const float *q, int n)
{
put<4, Way::THRICE>(p, 2.0f);
}
// want: void *to = p;
// want: ((float *)to)[0] = 3 * 2.0f;

// case: what is written for other arguments is not taken
enum class Way { PLAIN, TWICE = 4, THRICE };
template <int Bytes, Way way = Way::PLAIN> __device__ void put(void *to, float x);
template <> __device__ void put<4>(void *to, float x) { ((float *)to)[0] = x; }
template <> __device__ void put<8>(void *to, float x) { ((double *)to)[0] = x; }
template <> __device__ void put<4, Way::THRICE>(void *to, float x) { ((float *)to)[0] = 3 * x; }
__global__ void k(float *p, const float *q, int n)
{
put<16>(p, 2.0f);
}
// want: put<16>(p, 2.0f);
// want: note: line 8: put stays a call: which put is called cannot be told from its arguments

// case: what is written for other arguments is not taken (2)
enum class Way { PLAIN, TWICE = 4, THRICE };
template <int Bytes, Way way = Way::PLAIN> __device__ void put(void *to, float x);
template <> __device__ void put<4>(void *to, float x) { ((float *)to)[0] = x; }
template <> __device__ void put<8>(void *to, float x) { ((double *)to)[0] = x; }
template <> __device__ void put<4, Way::THRICE>(void *to, float x) { ((float *)to)[0] = 3 * x; }
__global__ void k(float *p, const float *q, int n)
{
put<4, Way::TWICE>(p, 2.0f);
}
// want: put<4, Way::TWICE>(p, 2.0f);
// want: note: line 8: put stays a call: which put is called cannot be told from its arguments

// case: what is written for other arguments is not taken (3)
enum class Way { PLAIN, TWICE = 4, THRICE };
template <int Bytes, Way way = Way::PLAIN> __device__ void put(void *to, float x);
template <> __device__ void put<4>(void *to, float x) { ((float *)to)[0] = x; }
template <> __device__ void put<8>(void *to, float x) { ((double *)to)[0] = x; }
template <> __device__ void put<4, Way::THRICE>(void *to, float x) { ((float *)to)[0] = 3 * x; }
template <int Bytes> __device__ void put(float *to, float x);
__global__ void k(float *p, const float *q, int n)
{
put<4>(p, 2.0f);
}
// want: put<4>(p, 2.0f);
// want: note: line 9: put stays a call: which put is called cannot be told from its arguments

// case: templates are distinguished by types that hang on no argument
template <int width = 32> __device__ float lanes(float x) { return __shfl_xor_sync(~0u, x, width / 2); }
template <int width = 32> __device__ int lanes(int x) { return __shfl_xor_sync(~0u, x, width / 4); }
__global__ void k(float *p, const float *q, int n)
{
p[0] = lanes<16>(q[0]);
}
// want: p[0] = __shfl_xor_sync(~0u, q[0], 8);

// case: templates are distinguished by types that hang on no argument (2)
template <int width = 32> __device__ float lanes(float x) { return __shfl_xor_sync(~0u, x, width / 2); }
template <int width = 32> __device__ int lanes(int x) { return __shfl_xor_sync(~0u, x, width / 4); }
__global__ void k(float *p, const float *q, int n)
{
p[0] = lanes(n);
}
// want: p[0] = __shfl_xor_sync(~0u, n, 8);

// case: templates that the language would weigh are not told apart
template <int width = 32> __device__ float lanes(float x) { return __shfl_xor_sync(~0u, x, width / 2); }
template <int width = 32> __device__ int lanes(int x) { return __shfl_xor_sync(~0u, x, width / 4); }
__global__ void k(float *p, const float *q, int n)
{
unsigned int k = n; p[0] = lanes(k);
}
// want: unsigned int k = n;
// want: p[0] = lanes(k);
// want: note: line 5: lanes stays a call: which lanes is called cannot be told from its arguments

// case: templates that the language would weigh are not told apart (2)
template <int width = 32> __device__ float lanes(float x) { return __shfl_xor_sync(~0u, x, width / 2); }
template <int width = 32> __device__ int lanes(int x) { return __shfl_xor_sync(~0u, x, width / 4); }
template <typename T> __device__ T lanes(T x) { return __shfl_xor_sync(~0u, x, 1); }
__global__ void k(float *p, const float *q, int n)
{
p[0] = lanes(q[0]);
}
// want: p[0] = lanes(q[0]);
// want: note: line 6: lanes stays a call: which lanes is called cannot be told from its arguments

// case: a default before an argument that is deduced
template <int way, int width = 2 * way, typename T> __device__ T sum(T x) {
  return __shfl_xor_sync(~0u, x, width);
}
__global__ void k(float *p, const float *q, int n)
{
p[0] = sum<4>(q[0]);
}
// want: p[0] = __shfl_xor_sync(~0u, q[0], 8);

// case: arguments that only the declaration names
__device__ void f(float *p, int a = 1, float b = 2.0f) { p[a] = b; }
__global__ void k(float *p, const float *q, int n)
{
f(p); f(p, n);
}
// want: p[1] = 2.0f;
// want: p[n] = 2.0f;

// case: objects are called by their operator
template <typename T> struct Sum { __device__ T operator()(T a, T b) const { return a + b; } };
template <typename T> struct Most { __device__ T operator()(T a, T b) const { return a < b ? b : a; } };
template <typename T, template <typename> class Op> __device__ void join(T *at, T x) {
  Op<T> op;
  at[0] = op(at[0], x);
}
__global__ void k(float *p, const float *q, int n)
{
join<float, Sum>(p, q[0]);
}
// want: const float x = q[0];
// want: p[0] = p[0] + x;

// case: objects are called by their operator (2)
template <typename T> struct Sum { __device__ T operator()(T a, T b) const { return a + b; } };
template <typename T> struct Most { __device__ T operator()(T a, T b) const { return a < b ? b : a; } };
template <typename T, template <typename> class Op> __device__ void join(T *at, T x) {
  Op<T> op;
  at[0] = op(at[0], x);
}
__global__ void k(float *p, const float *q, int n)
{
join<float, Most>(p, q[0]);
}
// want: const float x = q[0];
// want: const float a = p[0];
// want: const float operator_result = a < x ? x : a;
// want: p[0] = operator_result;

// case: assignments in a row are taken one by one
__global__ void k(float *p, const float *q, int n)
{
float s; p[n] = s = q[0] * 2.0f;
}
// want: float s;
// want: s = q[0] * 2.0f;
// want: p[n] = s;

// case: assignments in a row are taken one by one: which n is meant?
__global__ void k(float *p, const float *q, int n)
{
p[n] = n = 3;
}
// want: p[n] = n = 3;

// case: an enumerator keeps its enumeration
enum Way { PLAIN, TWICE };
template <Way way> __device__ float moved(float x) { return way == TWICE ? 2 * x : x; }
template <Way way> __device__ void put(float *to, float x) { to[0] = moved<way>(x); }
__global__ void k(float *p, const float *q, int n)
{
put<Way::TWICE>(p, q[0]);
}
// want: const float x = q[0];
// want: p[0] = moved<Way::TWICE>(x);

// case: assertions that hold are gone
template <int N> __device__ void f(float *p) { assert(N <= 64 && N % 2 == 0); p[N] = 1; }
__global__ void k(float *p, const float *q, int n)
{
f<8>(p);
}
// want: p[8] = 1;

// case: assertions that hold are gone (2)
template <int N> __device__ void f(float *p) { assert(N <= 64 && N % 2 == 0); p[N] = 1; }
__global__ void k(float *p, const float *q, int n)
{
f<7>(p);
}
// want: assert(0);
// want: p[7] = 1;

// case: a cast tells what auto points to
__global__ void k(float *p, const float *q, int n)
{
auto v = (const float4 *)q; p[0] = v[0].x;
}
// want: const float4 *v = (const float4 *)q;
// want: p[0] = v[0].x;

// case: block loads and stores are each threads own
__global__ void k(float *p, const float *q, int n)
{
typedef cub::BlockLoad<float, 64, 2 * 2, cub::BLOCK_LOAD_WARP_TRANSPOSE> Load;
typedef cub::BlockStore<float, 64, 4, cub::BLOCK_STORE_VECTORIZE> Store;
__shared__ union { typename Load::TempStorage load; typename Store::TempStorage store; } room;
float own[4];
Load(room.load).Load(&(q[n]), own, n + 1, 0.5f);
Store(room.store).Store(p, own);
}
// want: float own[4];
// want: const int valid_1 = n + 1;
// want: #pragma unroll
// want: for (int item_1 = 0; item_1 < 4; ++item_1)
// want:     own[item_1] = threadIdx.x * 4 + item_1 < valid_1 ? q[n + (threadIdx.x * 4 + item_1)] : 0.5f;
// want: #pragma unroll
// want: for (int item_2 = 0; item_2 < 4; ++item_2)
// want:     p[threadIdx.x * 4 + item_2] = own[item_2];

// case: block loads that lie otherwise are not understood
__global__ void k(float *p, const float *q, int n)
{
typedef cub::BlockLoad<float, 64, 4, cub::BLOCK_LOAD_STRIPED> Load;
__shared__ typename Load::TempStorage room; float own[4]; Load(room).Load(q, own); p[0] = own[0];
}
// want: float own[4];
// want: cub::BlockLoad<float, 64, 4, cub::BLOCK_LOAD_STRIPED>(room).Load(q, own);
// want: p[0] = own[0];

// case: block loads that lie otherwise are not understood (2)
__global__ void k(float *p, const float *q, int n)
{
typedef cub::BlockLoad<float, 64, 4, cub::BLOCK_LOAD_DIRECT, 2> Load;
__shared__ typename Load::TempStorage room; float own[4]; Load(room).Load(q, own); p[0] = own[0];
}
// want: float own[4];
// want: cub::BlockLoad<float, 64, 4, cub::BLOCK_LOAD_DIRECT, 2>(room).Load(q, own);
// want: p[0] = own[0];

// case: a call of nothing is gone
__device__ void marker(int n) {
#if 0
__syncthreads();
#endif
}
__global__ void k(float *p, const float *q, int n)
{
marker(n); p[0] = 1;
}
// want: p[0] = 1;

// case: what is written for a result is told by it
template <typename To, typename From> __device__ To to(From x) { return To(x); }
template <> __device__ __half to(float x) { return __float2half(x); }
template <> __device__ __nv_bfloat16 to(float x) { return __float2bfloat16(x); }
template <typename T> __device__ void put(T *at, float x) { at[0] = to<T>(x); }
__global__ void k(__half *p, const float *q)
{
put(p, q[0]);
}
// want: const float x = q[0];
// want: p[0] = to<__half>(x);

// case: constants of one name in several namespaces
namespace rows { constexpr int width = 8; __device__ int wide(int i) { return i * width; } }
namespace tiles { constexpr int width = 4; __device__ int wide_tile(int i) { return i * width; } }
__global__ void k(float *p, const float *q, int n)
{
p[rows::wide(n)] = rows::width; p[tiles::wide_tile(n)] = tiles::width;
}
// want: p[n * 8] = 8;
// want: p[n * 4] = 4;

// case: a copy that is handed on by reference is a copy
__device__ void twice(float &a) { a = a * 2.0f; }
    __device__ float of(float a) { twice(a); return a; }
__global__ void k(float *p, const float *q, int n)
{
float v = q[0]; p[0] = of(v) + v;
}
// want: float v = q[0];
// want: float a = v;
// want: a = a * 2.0f;
// want: p[0] = a + v;

// case: a copy that is handed on by reference is a copy (2)
__device__ void twice(float &a) { a = a * 2.0f; }
    __device__ float of(float a) { twice(a); return a; }
__global__ void k(float *p, const float *q, int n)
{
p[0] = of(q[0]);
}
// want: float a = q[0];
// want: a = a * 2.0f;
// want: p[0] = a;

// case: a copy that is handed on by reference is a copy (3)
__device__ void twice(float &a) { a = a * 2.0f; }
    __device__ float of(float a) { twice(a); return a; }
__global__ void k(float *p, const float *q, int n)
{
float v = q[0]; v = of(v); p[0] = v;
}
// want: float v = q[0];
// want: v = v * 2.0f;
// want: p[0] = v;

// case: a value nobody takes is left out
__device__ int f(float *to) { to[0] = 1; return 0; }
__global__ void k(float *p, const float *q, int n)
{
f(p);
}
// want: p[0] = 1;

// case: functions may call functions
__device__ void inner(float *to, float x) { to[0] = x; }
__device__ void outer(float *to, int i) { inner(to + i, i * 2.0f); }
__global__ void k(float *p, const float *q, int n)
{
outer(p, n);
}
// want: float *to = p + n;
// want: const float x = n * 2.0f;
// want: to[0] = x;

// case: what has to stay a call is said
__device__ void f(float *p) { f(p); }
__global__ void k(float *p, const float *q, int n)
{
f(p);
}
// want: f(p);
// want: note: line 1: f stays a call: it calls itself

// case: what has to stay a call is said (2)
__device__ float f(float *p) { for (;;) { if (p[0]) return 1; } return 2; }
__global__ void k(float *p, const float *q, int n)
{
p[0] = f(p);
}
// want: p[0] = f(p);
// want: note: line 4: f stays a call: it returns from inside a loop

// case: what has to stay a call is said (3)
__device__ int f(float *p) { p[0]++; return 1; }
__global__ void k(float *p, const float *q, int n)
{
while (f(p)) p++;
}
// want: while (f(p))
// want:     p++;
// want: note: line 4: f stays a call: it stands in the head of a loop

// case: what has to stay a call is said (4)
__device__ int f(float *p) { p[0]++; return 1; }
__global__ void k(float *p, const float *q, int n)
{
n = n && f(p);
}
// want: n = n && f(p);
// want: note: line 4: f stays a call: it is called under a condition or behind a comma

// case: what has to stay a call is said (5)
template <typename T> __device__ void f(float *p) { T x = p[0]; }
__global__ void k(float *p, const float *q, int n)
{
f(p);
}
// want: f(p);
// want: note: line 4: f stays a call: f: its template parameter T cannot be told from the arguments

// case: what has to stay a call is said (6)
__device__ void f(float *p, int a) { p[a] = 1; }
__device__ void f(float *p, char a) { p[a] = 2; }
__global__ void k(float *p, const float *q, int n)
{
f(p, unknown());
}
// want: f(p, unknown());
// want: note: line 5: f stays a call: which f is called cannot be told from its arguments

// case: what has to stay a call is said (7)
__device__ void f(float *p, int b, int a = 1) { p[a] = b; }
__global__ void k(float *p, const float *q, int n)
{
f(p);
}
// want: f(p);
// want: note: line 4: f stays a call: none of that name takes 1 arguments

// case: what has to stay a call is said (8)
__device__ void f(float *p, int a = 1) { p[a] = 1; }
__device__ void f(float *p, float a = 1) { p[0] = a; }
__global__ void k(float *p, const float *q, int n)
{
f(p);
}
// want: f(p);
// want: note: line 5: f stays a call: none of that name takes 1 arguments

// case: what has to stay a call is said (9)
__device__ void f(float *p) { switch (n) { case 1: return; } }
__global__ void k(float *p, const float *q, int n)
{
f(p);
}
// want: f(p);
// want: note: line 4: f stays a call: it leaves from inside text that is not understood

// case: a function that is put in place brings its comments
__device__ void add(float *p, float x)
{
    // the sum so far
    p[0] += x;
}
__global__ void k(float *p)
{
    add(p, 1.0f);
}
// want: // the sum so far
// want: p[0] += 1.0f;
