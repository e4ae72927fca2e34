// What a body may change of the variables that it names.
// with: before = '''
// with: struct V {
// with:     float e[2]; float *p;
// with:     __device__ void set(float v) { e[0] = v; }
// with:     __device__ float get() const { return e[0]; }
// with: };
// with: __device__ void into(float &to, const float &from) { to = from; }
// with: __device__ float twice(float v) { v *= 2; return v; }
// with: __device__ void fill(float *to) { to[0] = 1; }
// with: __device__ void only_reads(const float *p, float &to) { to = p[0]; }
// with: '''

// case: what bodies change and store
// with: parameters = "float a, float b, float *p, V v, int i"
// each line
a = b;  // want: changes a; of parameters a
++a; b--;  // want: changes a b; of parameters a b
a += p[i];  // want: changes a; of parameters a
p[i] = a;  // want: through p; stores
*p = a;  // want: through p; stores
p += 1;  // want: changes p; of parameters p
into(a, b);  // want: changes a; stores; of parameters a
b = twice(a);  // want: changes b; of parameters b
v.set(a);  // want: changes v; stores; of parameters v
b = v.get();  // want: changes b; of parameters b
v.e[0] = a;  // want: through v; of parameters v
(i ? a : b) = 1;  // want: changes a b; of parameters a b
float &r = a; r = 2;  // want: changes a r; has other names for a; of parameters a
float *q = &a; *q = 2;  // want: changes a; through q; stores; has other names for a; of parameters a
far_away(a);  // want: changes a; stores; of parameters a
b = fmaxf(a, 1.0f);  // want: changes b; of parameters b
asm("mov.u32 %0, %0;" : "+f"(a));  // want: changes a asm; stores; of parameters a
float t[2]; t[0] = a;  // want: through t
p[0] = a;  // want: through p; stores
fill(p);  // want: stores
atomicAdd(p, a);  // want: stores
__syncthreads();  // want: stores
__shared__ float s[2]; s[0] = a;  // want: through s; stores
b = fmaxf(a, p[0]);  // want: changes b; of parameters b
float &r = a; float *q = &b; const float c = i;  // want: changes a b; has other names for a b; of parameters a b
p[0] = a; v.e[1] = a;  // want: through p v; stores; of parameters v

// case: a parameter by reference is not its own
// with: parameters = "float &a, float b"
// each line
a += b;  // want: changes a; stores; of parameters a
