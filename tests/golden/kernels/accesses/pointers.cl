// What kernel bodies do through their pointers: the sources of every role in a drafted problem.

// case: opencl
// with: declared = "__global float* p"
// each line
vstore4(v, n, p);  // want: written
float4 v = vload4(n, p);  // want: read
vstore_half_rte(x, n, (__global half*)p);  // want: written
__global float* row = p + n; row[1] = 0.0f;  // want: written
((__global float4*)p)[n] = (float4)(0.0f);  // want: written
float4 v = (float4)(p[0], p[1], p[2], p[3]);  // want: read
p[n].s01 = v.lo;  // want: written
atomic_inc((volatile __global int*)&p[n]);  // want: read, written
event_t e = async_work_group_copy(tile, p, n, 0);  // want: read
event_t e = async_work_group_copy(p, tile, n, 0);  // want: written
x = unknown(p[n]);  // want: read
int new = 1; int class = 2; p[new] = class;  // want: written
