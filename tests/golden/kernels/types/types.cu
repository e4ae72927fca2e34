// What type an expression has, `?` where that is not known.
// with: before = '''
// with: template <typename T> __device__ T same(T x) { return x; }
// with: __device__ double own(int x) { return x; }'''
// with: body = '''
// with: __device__ void f(const __half *h, int n)
// with: {
// with:     const __half *row = h + n;
// with:     auto moved = row + 3;
// with:     float x[4]; uint4 v; __half2 pair; unsigned u = n; long long l = n; char c = 1; __half one;
// with:     float twice; { int twice; }
// with:     return VALUE;
// with: }'''

// case: the type of an expression
// each line
1  // want: int
1.0  // want: double
1.0f  // want: float
1u  // want: unsigned int
1LL  // want: long long
5000000000  // want: long long
row  // want: const __half *
row[1]  // want: const __half
moved[1]  // want: const __half
x[1]  // want: float
&x[1]  // want: float *
v.x  // want: unsigned int
pair.y  // want: __half
c + c  // want: int
n * u  // want: unsigned int
u * l  // want: long long
n * 1.5f  // want: float
one * one  // want: __half
one * n  // want: ?
n < u  // want: bool
!n  // want: bool
n ? 1.0f : 2.0f  // want: float
__half2float(row[0])  // want: float
__ldg(row + 1)  // want: __half
__shfl_xor_sync(0xffffffffu, x[0], 1)  // want: float
fmaxf(1, 2)  // want: float
make_float4(1, 2, 3, 4)  // want: float4
min(n, 3)  // want: int
own(3)  // want: double
same(3)  // want: ?
unknown(3)  // want: ?
twice  // want: ?
threadIdx.x * 4  // want: unsigned int
(size_t)n  // want: size_t
sizeof(int)  // want: size_t
n += 2  // want: int
