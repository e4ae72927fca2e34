// Lambdas that function templates are handed: put in place, or left where that is not clear.

// case: a lambda is called where it was handed to
template <typename T, typename F> __device__ void each(const T *x, int n, F &&f) { for (int i = 0; i < n; i++) f(x[i]); }
__global__ void k(const float *x, float *y, int n)
{
float s = 0; auto f = [&s](const float &v) { s += v; }; each(x, n, f); y[0] = s;
}
// want: float s = 0;
// want: for (int i = 0; i < n; i++) {
// want:     const float v = x[i];
// want:     s += v;
// want: }
// want: y[0] = s;

// case: a lambda is called where it was handed to (2)
template <typename T, typename F> __device__ void each(const T *x, int n, F &&f) { for (int i = 0; i < n; i++) f(x[i]); } template <typename T, typename F> __device__ void rows(const T *x, int n, F &&f) { each(x, n, std::forward<F>(f)); }
__global__ void k(const float *x, float *y, int n)
{
float s = 0; auto f = [&s](const float &v) { s += v; }; rows(x, n, f); y[0] = s;
}
// want: float s = 0;
// want: for (int i = 0; i < n; i++) {
// want:     const float v = x[i];
// want:     s += v;
// want: }
// want: y[0] = s;

// case: a lambda that does more than being called stays
template <typename T, typename F> __device__ void each(const T *x, int n, F &&f) { F g = f; for (int i = 0; i < n; i++) g(x[i]); }
__global__ void k(const float *x, float *y, int n)
{
float s = 0; auto f = [&s](const float &v) { s += v; }; each(x, n, f); y[0] = s;
}
// want: float s = 0;
// want: each(x, n, lambda_f_4(s));
// want: y[0] = s;
// want: note: line 4: each stays a call: each: its template parameter F cannot be told from the arguments
// want: note: line 4: lambda_f_4 stays a call: none of that name takes 1 arguments

// case: a lambda that does more than being called stays (2)
template <typename T, typename F> __device__ void each(const T *x, int n, F &&f) { for (int i = 0; i < sizeof(F); i++) f(x[i]); }
__global__ void k(const float *x, float *y, int n)
{
float s = 0; auto f = [&s](const float &v) { s += v; }; each(x, n, f); y[0] = s;
}
// want: float s = 0;
// want: each(x, n, lambda_f_4(s));
// want: y[0] = s;
// want: note: line 4: each stays a call: each: its template parameter F cannot be told from the arguments
// want: note: line 4: lambda_f_4 stays a call: none of that name takes 1 arguments

// case: a lambda that does more than being called stays (3)
template <typename T, typename F> __device__ void each(const T *x, int n, F &&f) { for (int i = 0; i < n; i++) f(x[i]); } template <typename T, typename F> __device__ void each(T x, int n, F &&f) { }
__global__ void k(const float *x, float *y, int n)
{
float s = 0; auto f = [&s](const float &v) { s += v; }; each(x, n, f); y[0] = s;
}
// want: float s = 0;
// want: each(x, n, lambda_f_4(s));
// want: y[0] = s;
// want: note: line 4: each stays a call: which each is called cannot be told from its arguments
// want: note: line 4: lambda_f_4 stays a call: none of that name takes 1 arguments

// case: a lambda that does more than being called stays (4)
template <typename T, typename F> __device__ void each(const T *x, int n, F &&f) { for (int i = 0; i < n; i++) f(x[i]); }
__global__ void k(const float *x, float *y, int n)
{
float s = 0; auto f = [&s](const float &v) { s += v; }; each<float, void (*)(float)>(x, n, f); y[0] = s;
}
// want: float s = 0;
// want: each<float, void (*)(float)>(x, n, lambda_f_4(s));
// want: y[0] = s;
// want: note: line 4: each stays a call: each: `void (*)(float)` is not understood as a type
// want: note: line 4: lambda_f_4 stays a call: none of that name takes 1 arguments

// case: a lambda that moves a pointer is not taken
__global__ void k(const float *x, float *y, int n)
{
auto f = [&](float v) { y += 1; y[0] = v; }; f(x[0]); y[1] = 2;
}
// want: auto f = [&](float v) { y += 1; y[0] = v; };
// want: f(x[0]);
// want: y[1] = 2;

// case: what a lambda captures by value must stay
__global__ void k(float *y) { float s = 0; auto f = [s](float v) { return s + v; }; s = 2; y[0] = f(1); }
// want: not read: line 1: k could not be read: a lambda keeps an earlier value of s
