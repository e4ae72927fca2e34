// Records in kernels: methods, operators and conversions put in place, objects as their fields.

// case: a specialisation with one field is that field
template <typename T, int N> struct vec {
    T data[N];
    static constexpr int size = N;
    __device__ T& operator[](int i) { return data[i]; }
    __device__ const T& operator[](int i) const { return data[i]; }
    __device__ void load(const T *p) { for (int i = 0; i < N; ++i) data[i] = p[i]; }
    template <typename U> __device__ void cast_load(const U *p) {
        vec<U, N> own; own.load(p);
        for (int i = 0; i < N; ++i) data[i] = T(own[i]);
    }
};
template <> struct vec<half, 8> {
    uint4 data;
    __device__ half& operator[](int i) { return ((half *)&data)[i]; }
    __device__ void load(const half *p);
    __device__ void store(half *p) const { *(uint4 *)p = data; }
};
__device__ void vec<half, 8>::load(const half *p) { data = *(const uint4 *)p; }
__global__ void k(half *p, const half *q, float *f, int n)
{
vec<half, 4 * 2> v; v.load(q); v[n] = v[0]; v.store(p);
}
// want: uint4 v;
// want: v = ((const uint4 *)q)[0];
// want: ((__half *)&v)[n] = ((__half *)&v)[0];
// want: ((uint4 *)p)[0] = v;

// case: a template of a class template is called
template <class A, class B> struct num_cast { };
template <> struct num_cast<float, half> {
    template <int N> __device__ static void cast(float *to, const half *from) {
        for (int i = 0; i < N; ++i) to[i] = __half2float(from[i]);
    }
};
__global__ void k(half *p, const half *q, float *f, int n)
{
num_cast<float, half>::cast<4>(f, q);
}
// want: for (int i = 0; i < 4; ++i)
// want:     f[i] = __half2float(q[i]);

// case: a class template is taken apart
template <typename T, int N> struct vec {
    T data[N];
    static constexpr int size = N;
    __device__ T& operator[](int i) { return data[i]; }
    __device__ const T& operator[](int i) const { return data[i]; }
    __device__ void load(const T *p) { for (int i = 0; i < N; ++i) data[i] = p[i]; }
    template <typename U> __device__ void cast_load(const U *p) {
        vec<U, N> own; own.load(p);
        for (int i = 0; i < N; ++i) data[i] = T(own[i]);
    }
};
template <> struct vec<half, 8> {
    uint4 data;
    __device__ half& operator[](int i) { return ((half *)&data)[i]; }
    __device__ void load(const half *p);
    __device__ void store(half *p) const { *(uint4 *)p = data; }
};
__device__ void vec<half, 8>::load(const half *p) { data = *(const uint4 *)p; }
__global__ void k(half *p, const half *q, float *f, int n)
{
vec<float, 2> v; v.cast_load(q); f[vec<float, 2>::size] = v[1];
}
// want: float v_data[2];
// want: __half own_data[2];
// want: for (int i_2 = 0; i_2 < 2; ++i_2)
// want:     own_data[i_2] = q[i_2];
// want: for (int i = 0; i < 2; ++i)
// want:     v_data[i] = (float)own_data[i];
// want: f[2] = v_data[1];

// case: a number type is its bits and rounds where its text does
struct Num {
    unsigned short x;
    Num() = default;
    __device__ Num(float f) { x = __half_as_ushort(__float2half(f)); }
    __device__ operator float() const { return __half2float(__ushort_as_half(x)); }
};
__device__ Num operator+(const Num& a, const Num& b) { return float(a) + float(b); }
__device__ Num& operator+=(Num& a, const Num& b) { a = a + b; return a; }
__device__ Num __ldg(const Num *p) { Num n; n.x = ::__ldg((const unsigned short *)p); return n; }
__global__ void k(Num *w, const Num *r, int n)
{
Num a = __ldg(r + n); a += r[0]; w[n] = a + Num(1.0f);
}
// want: const unsigned short *p = r + n;
// want: unsigned short n_2;
// want: n_2 = __ldg((const unsigned short *)p);
// want: unsigned short a = n_2;
// want: const unsigned short b = r[0];
// want: const unsigned short operator_result =
// want:     __half_as_ushort(__float2half(__half2float(__ushort_as_half(a)) + __half2float(__ushort_as_half(b))));
// want: a = operator_result;
// want: w[n] =
// want:     __half_as_ushort(__float2half(__half2float(__ushort_as_half(a))
// want:                                   + __half2float(__ushort_as_half(__half_as_ushort(__float2half(1.0f))))));

// case: a number beside a float counts as a float
struct Num {
    unsigned short x;
    Num() = default;
    __device__ Num(float f) { x = __half_as_ushort(__float2half(f)); }
    __device__ operator float() const { return __half2float(__ushort_as_half(x)); }
};
__device__ Num operator+(const Num& a, const Num& b) { return float(a) + float(b); }
__device__ Num& operator+=(Num& a, const Num& b) { a = a + b; return a; }
__device__ Num __ldg(const Num *p) { Num n; n.x = ::__ldg((const unsigned short *)p); return n; }
__global__ void k(const Num *r, float *f, int n)
{
f[n] = r[n] * 2.0f + fmaxf(r[0], 1.0f);
}
// want: f[n] = __half2float(__ushort_as_half(r[n])) * 2.0f + fmaxf(__half2float(__ushort_as_half(r[0])), 1.0f);

// case: a union is its widest member
union U { uint4 raw; half h[8]; };
__global__ void k(half *p, const half *q, float *f, int n)
{
U u; u.raw = ((uint4 *)q)[n]; u.h[1] = u.h[0]; ((uint4 *)p)[n] = u.raw;
}
// want: uint4 u_raw;
// want: u_raw = ((uint4 *)q)[n];
// want: ((__half *)&u_raw)[1] = ((__half *)&u_raw)[0];
// want: ((uint4 *)p)[n] = u_raw;

// case: a pointer to records points to their elements
struct Four { float a[2]; float b, c; __device__ float sum() const { return a[0] + b; } };
__global__ void k(const Four *r, float *f, int n)
{
const Four *own = r + n; f[n] = own[1].b;
}
// want: const float *own = r + n * 4;
// want: f[n] = own[6];

// case: a pointer to records points to their elements (2)
struct Four { float a[2]; float b, c; __device__ float sum() const { return a[0] + b; } };
__global__ void k(const Four *r, float *f, int n)
{
f[n] = r[n].sum();
}
// want: float object_a[2];
// want: float object_b = r[n * 4 + 2];
// want: float object_c = r[n * 4 + 3];
// want: #pragma unroll
// want: for (int part = 0; part < 2; ++part)
// want:     object_a[part] = (r + n * 4)[part];
// want: const float sum_result = object_a[0] + object_b;
// want: f[n] = sum_result;

// case: what is not understood of a record is said
struct B { float a; }; struct S : B { float b; __device__ float go() { return b; } };
__global__ void k(half *p, const half *q, float *f, int n)
{
S s; f[0] = s.go();
}
// want: refused: the structure S is not understood: it inherits

// case: what is not understood of a record is said (2)
struct S { float a; __device__ S(const S& o) { a = o.a + 1; } __device__ S() {} };
__global__ void k(half *p, const half *q, float *f, int n)
{
S s; S t = s;
}
// want: refused: the structure S says itself how it is copied

// case: what is not understood of a record is said (3)
struct S { enum { N = 1u << 31 }; float a; __device__ float go() { return a * N; } };
__global__ void k(half *p, const half *q, float *f, int n)
{
S s; f[0] = s.go();
}
// want: refused: the structure S is not understood: `N = 1u << 31` may be more than an int holds

// case: what is not understood of a record is said (4)
struct S { unsigned a : 3; __device__ int go() { return a; } };
__global__ void k(half *p, const half *q, float *f, int n)
{
S s; f[0] = s.go();
}
// want: refused: the structure S is not understood: it has bit fields

// case: what is not understood of a record is said (5)
struct S { float a; __device__ float go(); __device__ int one() { return 1; } };
__global__ void k(half *p, const half *q, float *f, int n)
{
S s; f[0] = s.go();
}
// want: refused: S has no method go whose text is in the file

// case: what is not understood of a record is said (6)
struct S { float a; double b; __device__ float go() { return a; } };
__global__ void k(half *p, const half *q, float *f, int n)
{
f[0] = ((S *)f)[n].go();
}
// want: refused: the fields of S are of several types or lie apart

// case: what is not understood of a record is said (7)
struct S { float a, b; __device__ S() { a = 1; } __device__ float go() { return a; } };
__global__ void k(half *p, const half *q, float *f, int n)
{
S s[2][2]; f[0] = s[0][0].go();
}
// want: refused: the objects of the array 's' are made by a constructor, and how many there are is not known

// case: what is not understood of a record is said (8)
struct S { float a; __device__ S() { a = 1; } __device__ float go() { return a; } };
__global__ void k(half *p, const half *q, float *f, int n)
{
static S s; f[0] = s.go();
}
// want: refused: the object 's' is not one of this call alone

// case: what is not understood of a record is said (9)
struct S { float a, b; __device__ S(float x) : a(x), c(x) {} };
__global__ void k(half *p, const half *q, float *f, int n)
{
S s(1.0f); f[0] = s.a;
}
// want: refused: c is set, which is no field of S

// case: what is not understood of a record is said (10)
struct S { float a, b; __device__ S(const S& o, int n = 1) : a(n), b(o.b) {} __device__ S() {} };
__global__ void k(half *p, const half *q, float *f, int n)
{
S s; S t = s;
}
// want: refused: the structure S says itself how it is copied

// case: what is not understood of a record is said (11)
struct S { float a, b; __device__ S(float x) : a(x), b(x) {} };
__global__ void k(half *p, const half *q, float *f, int n)
{
f[0] = n > 0 ? S(1.0f).a : 0.0f;
}
// want: refused: an object is made under a condition or behind a comma inside an expression

// case: an object that is changed while it is read by another name
struct P { float a, b; __device__ void turn(const P& o) { a = o.b; b = o.a; } };
__global__ void k(half *p, const half *q, float *f, int n)
{
P s = {f[0], f[1]}; s.turn(s); f[0] = s.a; f[1] = s.b;
}
// want: float s_a = f[0];
// want: float s_b = f[1];
// want: s_a = s_b;
// want: s_b = s_a;
// want: f[0] = s_a;
// want: f[1] = s_b;

// case: the address of a value is that of a variable
struct Num {
    unsigned short x;
    Num() = default;
    __device__ Num(float f) { x = __half_as_ushort(__float2half(f)); }
    __device__ operator float() const { return __half2float(*reinterpret_cast<const __half *>(&x)); }
};
__device__ Num operator+(const Num& a, const Num& b) { return float(a) + float(b); }
__device__ Num& operator+=(Num& a, const Num& b) { a = a + b; return a; }
__device__ Num __ldg(const Num *p) { Num n; n.x = ::__ldg((const unsigned short *)p); return n; }
__global__ void k(const Num *p, Num *q)
{
q[0] = p[1] + p[2] + p[3];
}
// want: const unsigned short object =
// want:     __half_as_ushort(__float2half(__half2float(((const __half *)(p + 1))[0])
// want:                                   + __half2float(((const __half *)(p + 2))[0])));
// want: const float operatorfloat_result = __half2float(((const __half *)&object)[0]);
// want: q[0] = __half_as_ushort(__float2half(operatorfloat_result + __half2float(((const __half *)(p + 3))[0])));

// case: operators that begin with less than are found
struct Pair {
    float a, b;
    __device__ Pair(float x, float y) : a(x), b(y) {}
    __device__ bool operator<(const Pair &other) const { return a < other.a; }
    __device__ bool operator<=(const Pair &other) const { return a <= other.a; }
    __device__ Pair operator<<(int n) const { return Pair(a * n, b); }
    __device__ float sum() const { return a + b; }
};
template <typename T> struct One {
    T v;
    __device__ T get() const { return v; }
    __device__ static void put(T *to, T x) { One *const q = reinterpret_cast<One *>(to); q->v = x; }
    __device__ void clear() { One *const q = this; q->v = 0; }
};
__device__ float stored(float *p, float x) { p[1] = x; float y = x * 2; return y; }
__global__ void k(half *p, const half *q, float *f, int n)
{
Pair u(f[0], 1.0f), v(f[1], 2.0f); if (u < v) f[2] = u.b; if (u <= v) f[3] = (u << 3).a;
}
// want: const float x = f[0];
// want: float u_a = x;
// want: float u_b = 1.0f;
// want: const float x_2 = f[1];
// want: float v_a = x_2;
// want: float v_b = 2.0f;
// want: if (u_a < v_a)
// want:     f[2] = u_b;
// want: if (u_a <= v_a) {
// want:     const float x_3 = u_a * 3;
// want:     float Pair_made_a = x_3;
// want:     float Pair_made_b = u_b;
// want:     float given_a = Pair_made_a;
// want:     float given_b = Pair_made_b;
// want:     f[3] = given_a;
// want: }

// case: a field behind a pointer is that of the object there
struct Pair {
    float a, b;
    __device__ Pair(float x, float y) : a(x), b(y) {}
    __device__ bool operator<(const Pair &other) const { return a < other.a; }
    __device__ bool operator<=(const Pair &other) const { return a <= other.a; }
    __device__ Pair operator<<(int n) const { return Pair(a * n, b); }
    __device__ float sum() const { return a + b; }
};
template <typename T> struct One {
    T v;
    __device__ T get() const { return v; }
    __device__ static void put(T *to, T x) { One *const q = reinterpret_cast<One *>(to); q->v = x; }
    __device__ void clear() { One *const q = this; q->v = 0; }
};
__device__ float stored(float *p, float x) { p[1] = x; float y = x * 2; return y; }
__global__ void k(half *p, const half *q, float *f, int n)
{
One<float> *const o = (One<float> *)f; o->v = 1.0f;
}
// want: float *o = (float *)f;
// want: o[0] = 1.0f;

// case: a field behind a pointer is that of the object there (2)
struct Pair {
    float a, b;
    __device__ Pair(float x, float y) : a(x), b(y) {}
    __device__ bool operator<(const Pair &other) const { return a < other.a; }
    __device__ bool operator<=(const Pair &other) const { return a <= other.a; }
    __device__ Pair operator<<(int n) const { return Pair(a * n, b); }
    __device__ float sum() const { return a + b; }
};
template <typename T> struct One {
    T v;
    __device__ T get() const { return v; }
    __device__ static void put(T *to, T x) { One *const q = reinterpret_cast<One *>(to); q->v = x; }
    __device__ void clear() { One *const q = this; q->v = 0; }
};
__device__ float stored(float *p, float x) { p[1] = x; float y = x * 2; return y; }
__global__ void k(half *p, const half *q, float *f, int n)
{
const One<float> *o = (const One<float> *)f; f[1] = (o + n)->v;
}
// want: const float *o = (const float *)f;
// want: f[1] = (o + n)[0];

// case: a field behind a pointer is that of the object there (3)
struct Pair {
    float a, b;
    __device__ Pair(float x, float y) : a(x), b(y) {}
    __device__ bool operator<(const Pair &other) const { return a < other.a; }
    __device__ bool operator<=(const Pair &other) const { return a <= other.a; }
    __device__ Pair operator<<(int n) const { return Pair(a * n, b); }
    __device__ float sum() const { return a + b; }
};
template <typename T> struct One {
    T v;
    __device__ T get() const { return v; }
    __device__ static void put(T *to, T x) { One *const q = reinterpret_cast<One *>(to); q->v = x; }
    __device__ void clear() { One *const q = this; q->v = 0; }
};
__device__ float stored(float *p, float x) { p[1] = x; float y = x * 2; return y; }
__global__ void k(half *p, const half *q, float *f, int n)
{
One<float>::put(f + n, 2.0f);
}
// want: float *to = f + n;
// want: float *q_2 = (float *)to;
// want: q_2[0] = 2.0f;

// case: a field behind a pointer is that of the object there (4)
struct Pair {
    float a, b;
    __device__ Pair(float x, float y) : a(x), b(y) {}
    __device__ bool operator<(const Pair &other) const { return a < other.a; }
    __device__ bool operator<=(const Pair &other) const { return a <= other.a; }
    __device__ Pair operator<<(int n) const { return Pair(a * n, b); }
    __device__ float sum() const { return a + b; }
};
template <typename T> struct One {
    T v;
    __device__ T get() const { return v; }
    __device__ static void put(T *to, T x) { One *const q = reinterpret_cast<One *>(to); q->v = x; }
    __device__ void clear() { One *const q = this; q->v = 0; }
};
__device__ float stored(float *p, float x) { p[1] = x; float y = x * 2; return y; }
__global__ void k(half *p, const half *q, float *f, int n)
{
Pair *const o = (Pair *)f; o->b = o[n].a;
}
// want: float *o = f;
// want: o[1] = o[n * 2];

// case: an object does not hand out its own address
struct Pair {
    float a, b;
    __device__ Pair(float x, float y) : a(x), b(y) {}
    __device__ bool operator<(const Pair &other) const { return a < other.a; }
    __device__ bool operator<=(const Pair &other) const { return a <= other.a; }
    __device__ Pair operator<<(int n) const { return Pair(a * n, b); }
    __device__ float sum() const { return a + b; }
};
template <typename T> struct One {
    T v;
    __device__ T get() const { return v; }
    __device__ static void put(T *to, T x) { One *const q = reinterpret_cast<One *>(to); q->v = x; }
    __device__ void clear() { One *const q = this; q->v = 0; }
};
__device__ float stored(float *p, float x) { p[1] = x; float y = x * 2; return y; }
__global__ void k(half *p, const half *q, float *f, int n)
{
One<float> o; o.clear(); f[0] = o.get();
}
// want: refused: clear of One<float> uses its object's address

// case: what stands behind a comma comes after what stands before it
struct Pair {
    float a, b;
    __device__ Pair(float x, float y) : a(x), b(y) {}
    __device__ bool operator<(const Pair &other) const { return a < other.a; }
    __device__ bool operator<=(const Pair &other) const { return a <= other.a; }
    __device__ Pair operator<<(int n) const { return Pair(a * n, b); }
    __device__ float sum() const { return a + b; }
};
template <typename T> struct One {
    T v;
    __device__ T get() const { return v; }
    __device__ static void put(T *to, T x) { One *const q = reinterpret_cast<One *>(to); q->v = x; }
    __device__ void clear() { One *const q = this; q->v = 0; }
};
__device__ float stored(float *p, float x) { p[1] = x; float y = x * 2; return y; }
__global__ void k(half *p, const half *q, float *f, int n)
{
float i = 1.0f; if (i = f[n], Pair(i, 2.0f).sum() > 0.0f) f[0] = i;
}
// want: refused: an object is made under a condition or behind a comma inside an expression

// case: what stands behind a comma stays a call that is told
struct Pair {
    float a, b;
    __device__ Pair(float x, float y) : a(x), b(y) {}
    __device__ bool operator<(const Pair &other) const { return a < other.a; }
    __device__ bool operator<=(const Pair &other) const { return a <= other.a; }
    __device__ Pair operator<<(int n) const { return Pair(a * n, b); }
    __device__ float sum() const { return a + b; }
};
template <typename T> struct One {
    T v;
    __device__ T get() const { return v; }
    __device__ static void put(T *to, T x) { One *const q = reinterpret_cast<One *>(to); q->v = x; }
    __device__ void clear() { One *const q = this; q->v = 0; }
};
__device__ float stored(float *p, float x) { p[1] = x; float y = x * 2; return y; }
__global__ void k(float *f, int n)
{
    float i = 1; if (i = f[n], stored(f, i) > 0) f[0] = i;
}
// want: float i = 1;
// want: if (i = f[n], stored(f, i) > 0)
// want:     f[0] = i;
// want: note: line 18: stored stays a call: it is called under a condition or behind a comma
