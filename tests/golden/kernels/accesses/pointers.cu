// What kernel bodies do through their pointers: the sources of every role in a drafted problem.

// case: cuda
// each line
p[n] = 1;  // want: written
p[n] += 1;  // want: read, written
*p = 1;  // want: written
*(p + n) = 1;  // want: written
*p++ = 1;  // want: written
++p[n];  // want: read, written
float x = p[n];  // want: read
p[n] = p[n] * 2;  // want: read, written
((float4*)p)[n] = v;  // want: written
reinterpret_cast<float4*>(p)[n] = v;  // want: written
*reinterpret_cast<float4*>(&p[n]) = v;  // want: written
float4 v = *reinterpret_cast<const float4*>(p + n);  // want: read
float* row = p + n * 4; row[0] = 1;  // want: written
float* a = p; float* b = a + 1; if (n) b = a; *b = *a;  // want: read, written
auto q = reinterpret_cast<int4*>(p) + n; q[0] = v;  // want: written
float& cell = p[n]; cell = 1;  // want: written
const float& cell = p[n]; s = cell;  // want: read
for (float* q = p; q < p + n; ++q) *q = 0;  // want: written
for (int i = blockIdx.x; i < n; i += gridDim.x) p[i] = 2.0f;  // want: written
atomicAdd(&p[n], 1.0f);  // want: read, written
atomicCAS((int*)p + n, 0, 1);  // want: read, written
__stcs(p + n, 1.0f);  // want: written
s = __ldg(p + n);  // want: read
p[n].x = 1;  // want: written
p->x = 1;  // want: written
q[(int)p[n]] = 1;  // want: read
if (p != nullptr) q[n] = 1;  // want: neither
if (p) q[n] = 1;  // want: neither
int d = p - q;  // want: neither
p += n;  // want: neither
(void)p;  // want: neither
(n ? p : q)[0] = 1;  // want: written
auto f = [&](int i) { p[i] = 1; }; f(n);  // want: written
out[n] = fmaxf(p[n], expf(p[n + 1]));  // want: read

// case: cuda (2)
s = 1; /* p[0] = 1; */ // p[0] = 1;
 printf("p[0] = 1;");
// want: neither

// case: cuda (3)
#if X
 p[0] = 1;
#else
 s = p[0];
#endif
// want: read, written

// case: cuda (4)
// each line
mystery(p);  // want: may be read, may be written
mystery(p[n]);  // want: read, may be written
p[n] = 1; mystery(p);  // want: may be read, written
Tensor t(p, n);  // want: may be read, may be written
Tensor t{p}; t.store();  // want: may be read, may be written
view.p = p;  // want: may be read, may be written
asm volatile("st.global.f32 [%0], 0;" :: "l"(p));  // want: may be read, may be written
store.run(p + n, v);  // want: may be read, may be written

// case: const decides where the body does not
// with: declared = "const float* p"
// each line
mystery(p);  // want: read
((float*)p)[0] = 1;  // want: written

// case: helpers and macros
// with: before = "__device__ void put(float* q, float v) { *q = v; }"
// each line
put(p + n, 1);  // want: written

// case: helpers and macros (2)
// with: before = "template <typename T> __device__ void put(T& q, T v) { q = v; }"
// each line
put(p[n], 1.0f);  // want: written

// case: helpers and macros (3)
// with: before = "__device__ float twice(float v) { return v * 2; }"
// each line
s = twice(p[n]);  // want: read

// case: helpers and macros (4)
// with: before = "__device__ float sum(const float* q, int n) { return other(q); }"
// each line
s = sum(p, n);  // want: read

// case: helpers and macros (5)
// with: before = "__device__ void a(float* q) { b(q); } __device__ void b(float* q) { q[0]++; a(q); }"
// each line
a(p);  // want: read, written

// case: helpers and macros (6)
// with: before = "__device__ float* at(float* q) { return q + 1; }"
// each line
*at(p) = 1;  // want: may be read, may be written

// case: helpers and macros (7)
// with: before = '''
// with: #define OUT(i) p[i]
// with: '''
// each line
OUT(n) = 1;  // want: may be read, may be written

// case: helpers and macros (8)
// with: before = '''
// with: #define STORE(q, v) *(q) = v
// with: '''
// each line
STORE(p + n, 1);  // want: may be read, may be written

// case: helpers and macros (9)
// with: before = '''
// with: #define AT(i, j) ((i) * 4 + (j))
// with: '''
// each line
p[AT(n, 1)] = 1;  // want: written
