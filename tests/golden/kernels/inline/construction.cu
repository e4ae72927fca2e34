// Objects as they are made: the order of fields, what lists leave out, objects in objects.

// case: fields are set where they are declared in their order
struct Pair {
    int n; float f;
    __device__ Pair() : f(0.5f), n(3) {}
    __device__ Pair(int n, float f) : n(n), f(f) {}
    __device__ float get() const { return n * f; }
};
__global__ void k(const float *x, float *f, int n)
{
Pair p;
f[0] = p.f;
}
// want: int p_n = 3;
// want: float p_f = 0.5f;
// want: f[0] = p_f;

// case: an argument hides the field of its name
struct Pair {
    int n; float f;
    __device__ Pair() : f(0.5f), n(3) {}
    __device__ Pair(int n, float f) : n(n), f(f) {}
    __device__ float get() const { return n * f; }
};
__global__ void k(const float *x, float *f, int n)
{
Pair p(n, 2.0f), q{n, x[0]};
f[0] = q.f;
}
// want: int p_n = n;
// want: float p_f = 2.0f;
// want: const float f_2 = x[0];
// want: int q_n = n;
// want: float q_f = f_2;
// want: f[0] = q_f;

// case: a number in parentheses is no function
__global__ void k(const float *x, float *f, int n)
{
float a(x[n]), b(n * n);
f[0] = a * b;
}
// want: float a = (float)x[n];
// want: float b = (float)(n * n);
// want: f[0] = a * b;

// case: what a list leaves out has the value behind the field or none
struct S { float a = 3.0f; float b; float e[2]; };
__global__ void k(const float *x, float *f, int n)
{
S s{x[0]};
f[0] = s.a + s.b + s.e[0];
}
// want: float s_e[2];
// want: float s_a = x[0];
// want: float s_b = 0;
// want: s_e[0] = 0;
// want: s_e[1] = 0;
// want: f[0] = s_a + s_b + s_e[0];

// case: what a list leaves out has the value behind the field or none (2)
struct S { float a = 3.0f; float b; float e[2]; };
__global__ void k(const float *x, float *f, int n)
{
S s;
f[0] = s.a;
}
// want: float s_b;
// want: float s_e[2];
// want: float s_a = 3.0f;
// want: f[0] = s_a;

// case: many elements are set in a loop
struct Pair {
    int n; float f;
    __device__ Pair() : f(0.5f), n(3) {}
    __device__ Pair(int n, float f) : n(n), f(f) {}
    __device__ float get() const { return n * f; }
};
__global__ void k(const float *x, float *f, int n)
{
Pair p[20];
f[0] = p[n].f;
}
// want: int p_n[20];
// want: float p_f[20];
// want: #pragma unroll
// want: for (int part = 0; part < 20; ++part) {
// want:     p_n[part] = 3;
// want:     p_f[part] = 0.5f;
// want: }
// want: f[0] = p_f[n];

// case: an object in an object is its fields
struct Pair {
    int n; float f;
    __device__ Pair() : f(0.5f), n(3) {}
    __device__ Pair(int n, float f) : n(n), f(f) {}
    __device__ float get() const { return n * f; }
};
struct Outer { Pair of[2]; float c = 1.0f; };
__global__ void k(const float *x, float *f, int n)
{
Outer o;
Outer p = o;
f[0] = p.of[1].get() + o.c;
}
// want: int o_of_n[2];
// want: float o_of_f[2];
// want: o_of_n[0] = 3;
// want: o_of_f[0] = 0.5f;
// want: o_of_n[1] = 3;
// want: o_of_f[1] = 0.5f;
// want: float o_c = 1.0f;
// want: int p_of_n[2];
// want: float p_of_f[2];
// want: float p_c = o_c;
// want: #pragma unroll
// want: for (int part = 0; part < 2; ++part) {
// want:     p_of_n[part] = o_of_n[part];
// want:     p_of_f[part] = o_of_f[part];
// want: }
// want: int object_n = p_of_n[1];
// want: float object_f = p_of_f[1];
// want: const float get_result = object_n * object_f;
// want: f[0] = get_result + o_c;

// case: a variable by the name of a field is another one
struct Pair {
    int n; float f;
    __device__ Pair() : f(0.5f), n(3) {}
    __device__ Pair(int n, float f) : n(n), f(f) {}
    __device__ float get() const { return n * f; }
};
__global__ void k(const float *x, float *f, int n)
{
float p_f = 1.0f;
Pair p;
f[0] = p.f + p_f;
}
// want: float p_f = 1.0f;
// want: int p_n = 3;
// want: float p_f_2 = 0.5f;
// want: f[0] = p_f_2 + p_f;

// case: a method is chosen by whether its object is const
struct L {
    float a, b;
    __device__ float go() { return a; }
    __device__ float go() const { return b; }
    __device__ float same() const { return go(); }
};
__device__ float of(const L &l) { return l.go(); }
__global__ void k(const float *x, float *f, int n)
{
L l = {x[0], x[1]};
f[0] = l.go();
f[1] = l.same();
f[2] = of(l);
}
// want: float l_a = x[0];
// want: float l_b = x[1];
// want: f[0] = l_a;
// want: f[1] = l_b;
// want: f[2] = l_b;

// case: a second name for an object is the object
struct Pair {
    int n; float f;
    __device__ Pair() : f(0.5f), n(3) {}
    __device__ Pair(int n, float f) : n(n), f(f) {}
    __device__ float get() const { return n * f; }
};
__global__ void k(const float *x, float *f, int n)
{
Pair p[2];
int k = n;
Pair &r = p[k];
k = 0;
r.f += 1.0f;
f[0] = p[1].f;
}
// want: int p_n[2];
// want: float p_f[2];
// want: p_n[0] = 3;
// want: p_f[0] = 0.5f;
// want: p_n[1] = 3;
// want: p_f[1] = 0.5f;
// want: int k = n;
// want: const int r_index = k;
// want: k = 0;
// want: p_f[r_index] += 1.0f;
// want: f[0] = p_f[1];

// case: a loop over an array counts
__global__ void k(const float *x, float *f, int n)
{
float w[2] = {x[0], 1.0f};
for (auto &v : w) v *= 2.0f;
for (float v : w) f[0] += v;
}
// want: float w[2] = {x[0], 1.0f};
// want: for (int v_at = 0; v_at < 2; ++v_at)
// want:     w[v_at] *= 2.0f;
// want: for (int v_at = 0; v_at < 2; ++v_at) {
// want:     float v = w[v_at];
// want:     f[0] += v;
// want: }

// case: an array whose name is used again is not gone through
__global__ void k(const float *x, float *f, int n)
{
float w[2];
{ float w[3]; for (float v : w) f[0] += v; }
}
// want: float w[2];
// want: {
// want:     float w[3];
// want:     for (float v : w) f[0] += v;
// want: }
