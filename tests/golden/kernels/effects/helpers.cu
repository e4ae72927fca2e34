// Expressions, and helpers that do what they call does.
// with: file = '''
// with: __device__ int seen; __device__ volatile int flag; __constant__ float table[4];
// with: __device__ float plain(float a) { float s, c; sincosf(a, &s, &c); float t[2]; t[0] = s;
// with:     return t[0] + table[1]; }
// with: __device__ float stops(float a) { assert(a > 0); return a; }
// with: __device__ float counts(float a) { seen++; return a; }
// with: __device__ float sets(float a) { asm("mov.u32 %0, 1;" : "=r"(seen)); return a; }
// with: __device__ float keeps(float a) { static int n; n++; return a + n; }
// with: __device__ float waits(float a) { return a + flag; }
// with: __device__ float lane(float a) { unsigned l; asm("mov.u32 %0, %%laneid;" : "=r"(l)); return a * l; }
// with: __device__ float through(float a) { return lane(a); }
// with: __device__ float even(int n); __device__ float odd(int n) { return n == 0 ? 0 : even(n - 1); }
// with: __device__ float even(int n) { return n == 0 ? clock() : odd(n - 1); }
// with: __device__ float local(float a) { volatile float v = a; return v; }'''

// case: helpers
// each line
plain(a)  // want: none, not pure
stops(a)  // want: STOPS, not pure
counts(a)  // want: WRITES, not pure
sets(a)  // want: WRITES, not pure
keeps(a)  // want: READS WRITES, not pure
waits(a)  // want: VOLATILE, not pure
lane(a)  // want: THREAD, not pure
through(a)  // want: THREAD, not pure
odd(a)  // want: TIME, not pure
even(a)  // want: TIME, not pure
local(a)  // want: VOLATILE, not pure

// case: expressions
// each line
a + b * 2  // want: none
expf(a)  // want: none
float2{a, b}  // want: none
(int)a  // want: none
a ? b : -c  // want: none
threadIdx.x  // want: THREAD
a = 1  // want: ASSIGNS, not pure
a++  // want: ASSIGNS, not pure
p[i]  // want: READS, not pure
*p  // want: READS, not pure
p->x  // want: READS, not pure
f(a)  // want: THREAD SHAPE MASK TIME MACHINE READS WRITES ATOMIC ASSIGNS VOLATILE BARRIER FENCE OUTPUT STOPS ALLOCATES LAUNCHES RANDOM UNKNOWN, not pure
clock()  // want: TIME, not pure
atomicAdd(p, 1)  // want: READS WRITES ATOMIC, not pure
s.f()  // want: UNKNOWN, not pure
