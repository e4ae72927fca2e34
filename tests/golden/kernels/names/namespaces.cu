// Names of namespaces mean what C++ finds, although the file is read without its namespaces.

// case: two helpers of one name
namespace near { __device__ float scale(float x) { return x * 2.0f; } }
namespace far { __device__ float scale(float x) { return x * 3.0f; }
__device__ float both(float x) { return scale(x) + near::scale(x); } }
// want: near_scale: return x * 2.0f;
// want: far_scale: return x * 3.0f;
// want: both: return far_scale(x) + near_scale(x);
// want: the source has no kernel k

// case: two helpers of one name (2)
namespace near { __device__ float scale(float x) { return x * 2.0f; } }
namespace far { __device__ float scale(float x) { return x * 3.0f; }
__device__ float both(float x) { return scale(x) + near::scale(x); } }
__global__ void k(float *p, int n) { p[0] = near::scale(p[1]); p[2] = ::far::scale(p[1]); }
// want: near_scale: return x * 2.0f;
// want: far_scale: return x * 3.0f;
// want: both: return far_scale(x) + near_scale(x);
// want: p[0] = near_scale(p[1]);
// want: p[2] = far_scale(p[1]);

// case: a spelling that is taken
namespace near { __device__ float scale(float x) { return x * 2.0f; } }
namespace far { __device__ float scale(float x) { return x * 3.0f; }
__device__ float both(float x) { return scale(x) + near::scale(x); } }
__device__ float far_scale(float x) { return x; }
// want: near_scale: return x * 2.0f;
// want: far_scale_: return x * 3.0f;
// want: both: return far_scale_(x) + near_scale(x);
// want: far_scale: return x;
// want: the source has no kernel k

// case: an overload of another namespace is not meant
__device__ float f(double x) { return 1.0f; }
namespace own { __device__ float f(float x) { return 2.0f; } }
__global__ void k(float *p, int n) { p[0] = f(p[1]); p[1] = own::f(p[1]); }
// want: f: return 1.0f;
// want: own_f: return 2.0f;
// want: p[0] = f(p[1]);
// want: p[1] = own_f(p[1]);

// case: a name of the library in a namespace
namespace own { __device__ float max(float a, float b) { return a; } }
__global__ void k(float *p, int n) { p[0] = max(p[1], p[2]); p[1] = own::max(p[1], p[2]); }
// want: own_max: return a;
// want: p[0] = max(p[1], p[2]);
// want: p[1] = own_max(p[1], p[2]);

// case: what is declared later is not found
__device__ float f(float x) { return 1.0f; }
namespace own { __device__ float g(float x) { return f(x); }
__device__ float f(float x) { return 2.0f; }
__device__ float h(float x) { return f(x); } }
// want: f: return 1.0f;
// want: g: return f(x);
// want: own_f: return 2.0f;
// want: h: return own_f(x);
// want: the source has no kernel k

// case: using
namespace near { __device__ float scale(float x) { return x * 2.0f; } }
namespace far { __device__ float scale(float x) { return x * 3.0f; }
__device__ float both(float x) { return scale(x) + near::scale(x); } }
using namespace far;
__global__ void k(float *p, int n) { p[0] = scale(p[1]); }
// want: near_scale: return x * 2.0f;
// want: far_scale: return x * 3.0f;
// want: both: return far_scale(x) + near_scale(x);
// want: p[0] = far_scale(p[1]);

// case: using (2)
namespace near { __device__ float scale(float x) { return x * 2.0f; } }
namespace far { __device__ float scale(float x) { return x * 3.0f; }
__device__ float both(float x) { return scale(x) + near::scale(x); } }
__global__ void k(float *p, int n) { using namespace far; p[0] = scale(p[1]); }
// want: near_scale: return x * 2.0f;
// want: far_scale: return x * 3.0f;
// want: both: return far_scale(x) + near_scale(x);
// want: p[0] = far_scale(p[1]);

// case: using (3)
namespace near { __device__ float scale(float x) { return x * 2.0f; } }
namespace far { __device__ float scale(float x) { return x * 3.0f; }
__device__ float both(float x) { return scale(x) + near::scale(x); } }
using near::scale;
__global__ void k(float *p, int n) { p[0] = scale(p[1]); }
// want: near_scale: return x * 2.0f;
// want: far_scale: return x * 3.0f;
// want: both: return far_scale(x) + near_scale(x);
// want: p[0] = near_scale(p[1]);

// case: using (4)
namespace near { __device__ float scale(float x) { return x * 2.0f; } }
namespace far { __device__ float scale(float x) { return x * 3.0f; }
__device__ float both(float x) { return scale(x) + near::scale(x); } }
__global__ void k(float *p, int n) { using near::scale; p[0] = scale(p[1]); }
// want: near_scale: return x * 2.0f;
// want: far_scale: return x * 3.0f;
// want: both: return far_scale(x) + near_scale(x);
// want: p[0] = near_scale(p[1]);

// case: using (5)
namespace near { __device__ float scale(float x) { return x * 2.0f; } }
namespace far { __device__ float scale(float x) { return x * 3.0f; }
__device__ float both(float x) { return scale(x) + near::scale(x); } }
namespace f = far; namespace g = f;
__global__ void k(float *p, int n) { p[0] = g::scale(p[1]); }
// want: near_scale: return x * 2.0f;
// want: far_scale: return x * 3.0f;
// want: both: return far_scale(x) + near_scale(x);
// want: p[0] = far_scale(p[1]);

// case: using (6)
namespace near { __device__ float scale(float x) { return x * 2.0f; } }
namespace far { __device__ float scale(float x) { return x * 3.0f; }
__device__ float both(float x) { return scale(x) + near::scale(x); } }
__global__ void k(float *p, int n) { namespace f = far; namespace g = f; p[0] = g::scale(p[1]); }
// want: near_scale: return x * 2.0f;
// want: far_scale: return x * 3.0f;
// want: both: return far_scale(x) + near_scale(x);
// want: p[0] = far_scale(p[1]);

// case: a block sees only its own using
namespace near { __device__ float scale(float x) { return x * 2.0f; } }
namespace far { __device__ float scale(float x) { return x * 3.0f; }
__device__ float both(float x) { return scale(x) + near::scale(x); } }
__global__ void k(float *p, int n) { if (n) { using near::scale; p[0] = scale(p[1]); } else { using namespace far; p[0] = scale(p[1]); } }
// want: near_scale: return x * 2.0f;
// want: far_scale: return x * 3.0f;
// want: both: return far_scale(x) + near_scale(x);
// want: if (n)
// want:     p[0] = near_scale(p[1]);
// want: else
// want:     p[0] = far_scale(p[1]);

// case: what several namespaces have is refused with its line
namespace near { __device__ float scale(float x) { return x * 2.0f; } }
namespace far { __device__ float scale(float x) { return x * 3.0f; }
__device__ float both(float x) { return scale(x) + near::scale(x); } }
using namespace near;
using namespace far;
__global__ void k(float *p, int n) { p[0] = scale(p[1]); }
// want: not read: line 6: `scale` may be far::scale or near::scale: name the namespace that is meant

// case: what an argument leads to is refused where another is seen
namespace own { struct V { float x; }; __device__ float f(V v) { return v.x; } }
__device__ float f(float x) { return x; }
__global__ void k(float *p, int n) { p[0] = f(p[1]); }
// want: not read: line 3: `f` may be f or own::f: name the namespace that is meant

// case: what an argument leads to is refused where another is seen (2)
namespace own { struct V { float x; }; __device__ float f(V v) { return v.x; } }
__device__ float f(float x) { return x; }
__global__ void k(float *p, int n) { p[0] = ::f(p[1]); }
// want: own_f: return v.x;
// want: f: return x;
// want: p[0] = f(p[1]);

// case: an argument leads to its namespace
namespace own { struct V { float x; }; __device__ float f(V v) { return v.x; } }
__global__ void k(float *p, int n) { own::V v; v.x = p[1]; p[0] = f(v); }
// want: f: return v.x;
// want: V v;
// want: v.x = p[1];
// want: p[0] = f(v);

// case: what is not seen is not called
namespace own { __device__ float f(float x) { return x; } }
__global__ void k(float *p, int n) { p[0] = f(p[1]); }
// want: own_f: return x;
// want: p[0] = f(p[1]);

// case: definitions outside of their namespace
namespace own { __device__ float f(float x); __device__ float g(float x) { return 1.0f; } }
__device__ float g(float x) { return 2.0f; }
__device__ float own::f(float x) { return g(x); }
// want: own_g: return 1.0f;
// want: g: return 2.0f;
// want: f: return own_g(x);
// want: the source has no kernel k

// case: definitions outside of their namespace (2)
namespace own { __device__ float f(float x); __device__ float g(float x) { return 1.0f; } }
__device__ float g(float x) { return 2.0f; }
__device__ float own::f(float x) { return g(x); }
__global__ void k(float *p, int n) { p[0] = own::f(p[1]) + g(p[1]); }
// want: own_g: return 1.0f;
// want: g: return 2.0f;
// want: f: return own_g(x);
// want: p[0] = f(p[1]) + g(p[1]);

// case: nested inline and unnamed namespaces
namespace a::b { inline namespace v1 { __device__ float f(float x) { return 1.0f; } } }
namespace a { namespace { __device__ float f(float x) { return 2.0f; } }
__device__ float g(float x) { return f(x) + b::f(x) + a::b::v1::f(x); } }
// want: a_b_f: return 1.0f;
// want: a_f: return 2.0f;
// want: g: return a_f(x) + a_b_f(x) + a_b_f(x);
// want: the source has no kernel k

// case: records and members of one name
namespace a { struct V { float sum; __device__ float half_sum() { return sum * 0.5f; } };
__device__ float sum(float x) { return x; } }
namespace b { struct V { int sum; }; __device__ float sum(float x) { return -x; } }
__global__ void k(float *p, int n) { a::V v; v.sum = p[1]; p[0] = v.half_sum() + b::sum(p[2]); }
// want: a_sum: return x;
// want: b_sum: return -x;
// want: float v;
// want: v = p[1];
// want: p[0] = (float)(v * 0.5f) + b_sum(p[2]);

// case: kernels of one name
// with: entries = ["a::k", "::b::k"]
namespace a { __global__ void k(float *p) { p[0] = 1.0f; } }
namespace b { __global__ void k(float *p) { p[0] = 2.0f; } }
// want: -- a::k
// want: p[0] = 1.0f;
// want: -- ::b::k
// want: p[0] = 2.0f;

// case: template arguments of one name
// with: entries = ["k<a::Op>", "k<b::Op>"]
namespace a { struct Op { static __device__ float of(float x) { return x; } }; }
namespace b { struct Op { static __device__ float of(float x) { return -x; } }; }
template <typename T> __global__ void k(float *p) { p[0] = T::of(p[1]); }
// want: a_Op::of: return x;
// want: b_Op::of: return -x;
// want: -- k<a::Op>
// want: p[0] = p[1];
// want: -- k<b::Op>
// want: p[0] = -p[1];

// case: names of a library stay those of the library
__global__ void k(float *p, int n) { typedef cub::BlockReduce<float, 256> Sum; p[0] = cub::Max()(p[1], p[2]); }
// want: p[0] = cub::Max()(p[1], p[2]);

// case: names of a library stay those of the library (2)
namespace cub { __device__ float mine(float x) { return x; } }
__global__ void k(float *p, int n) { typedef cub::BlockReduce<float, 256> Sum; p[0] = cub::Max()(p[1], p[2]); }
// want: mine: return x;
// want: p[0] = cub::Max()(p[1], p[2]);

// case: names of a library stay those of the library (3)
namespace own { namespace cub = ::cub; }
__global__ void k(float *p, int n) { typedef cub::BlockReduce<float, 256> Sum; p[0] = cub::Max()(p[1], p[2]); }
// want: p[0] = cub::Max()(p[1], p[2]);

// case: an alias of a library
namespace own { namespace cub = hipcub;
__global__ void k(float *p, int n) { p[0] = cub::Max()(p[1], p[2]); } }
// want: p[0] = hipcub::Max()(p[1], p[2]);

// case: own names in a namespace of a library
namespace cub { __device__ float mine(float x) { return -x; } }
__global__ void k(float *p, int n) { p[0] = cub::mine(p[1]); }
// want: mine: return -x;
// want: p[0] = mine(p[1]);

// case: counts of pragmas
namespace a { constexpr int N = 4; }
namespace b { constexpr int N = 8;
__global__ void k(float *p) {
#pragma unroll N
for (int i = 0; i < N; ++i) p[i] = 0.0f; } }
// want: #pragma unroll
// want: for (int i = 0; i < 8; ++i)
// want:     p[i] = 0.0f;

// case: an overload of the library for own records
namespace own { struct V { float x; }; __device__ V __ldg(const V *p) { return *p; } }
__global__ void k(float *p, const own::V *q) { own::V v = __ldg(q); p[0] = v.x + __ldg(p + 1); }
// want: __ldg: return p[0];
// want: V v = q[0];
// want: p[0] = v.x + __ldg(p + 1);

// case: a namespace beside the library
namespace own { __device__ float max(float a, float b) { return a; } }
using namespace own;
__global__ void k(float *p, int n) { p[0] = max(n, 3); }
// want: not read: line 3: `max` may be max or own::max: name the namespace that is meant

// case: a namespace beside the library (2)
namespace own { __device__ float max(float a, float b) { return a; } }
using own::max;
__global__ void k(float *p, int n) { p[0] = max(n, 3); }
// want: not read: line 3: `max` may be max or own::max: name the namespace that is meant

// case: a name that only opencl has
namespace own { __device__ float clamp(float a) { return a; } }
using namespace own;
__global__ void k(float *p, int n) { p[0] = clamp(p[1]); }
// want: own_clamp: return a;
// want: p[0] = own_clamp(p[1]);

// case: a using in a block hides the library
namespace own { __device__ float max(float a, float b) { return a; } }
__global__ void k(float *p, int n) { using own::max; p[0] = max(n, 3); }
// want: own_max: return a;
// want: p[0] = own_max(n, 3);
