// ==== beyond an array
// fault: a read of 4 bytes outside its array
  if (t <= n)
    o[t] = 2 * x[t];  // here

// ==== before an array
// fault: a write of 4 bytes outside its array
  o[t - 1] = x[t];  // here

// ==== beyond an array of a fixed size
// fault: an index outside an array of a fixed size
  float a[4] = {1, 2, 3, 4};
  o[t & 63] = a[t & 7];  // here

// ==== shared memory that nobody wrote
// fault: a read of shared memory that nobody has written
  if (t < 32)
    s[t] = x[t];
  __syncthreads();
  if (t < 64)
    o[t] = s[t];  // here

// ==== a race in shared memory
// fault: a race in shared memory
  s[t & 63] = x[t & 63] + t;  // here
  __syncthreads();
  o[t & 63] = s[t & 63];

// ==== no barrier between
// fault: a race in shared memory
  if (t < 64)
    s[t] = x[t];
  __syncthreads();
  if (t < 63)
    s[t + 1] = 1;  // other
  if (t < 64)
    o[t] = s[t];  // here

// ==== blocks that write one place
// fault: a race in global memory
  if (t == 0)
    o[0] = blockIdx.x;  // here

// ==== a barrier not reached by all
// fault: a barrier that is not reached by all
  if (t < 8)
    o[t] = __shfl_xor_sync(0xffffffffu, x[t], 1);  // here
  __syncthreads();  // other

// ==== a barrier in both branches
// fault: a barrier that threads reach in different places
  if (t < 32)
    __syncthreads();  // here
  else
    __syncthreads();  // other

// ==== a misaligned vector
// fault: a misaligned access
  if (t < 4)
    *(float4 *)(o + 4 * t + 1) = make_float4(1, 2, 3, 4);  // here

// ==== an index that overflows
// fault: an integer that overflows
  int at = (t + 1) * 1000003 * n;  // here
  o[t & 63] = x[at & 31];

// ==== lanes that have left
  if (t >= 40)
    return;
  float v = __shfl_xor_sync(0xffffffffu, x[t], 1);
  v += __popc(__ballot_sync(0xffffffffu, 1));
  __syncthreads();
  o[t] = v;

// ==== a warp that waits
  if (t < 64)
    s[t] = x[t];
  __syncwarp();
  if (t < 64)
    o[t] = s[t ^ 1];

// ==== atomics
  if (t == 0)
    s[0] = 0;
  __syncthreads();
  atomicAdd(s, 1.0f);
  atomicAdd(o, 1.0f);

// ==== one value by all
  o[0] = 1.0f;

// ==== read, shuffled, written
  if (t < 64)
    s[t] = x[t];
  __syncthreads();
  if (t < 32) {
    float v = s[t];
    for (int i = 16; i; i /= 2)
      v += __shfl_xor_sync(0xffffffffu, v, i);
    if (t == 0)
      s[1] = v;
  }
  __syncthreads();
  if (t < 64)
    o[t] = s[1];

// ==== the last block reads what the others wrote
  __shared__ bool last;
  if (t == 0) {
    o[blockIdx.x + 1] = x[blockIdx.x];
    __threadfence();
    last = atomicAdd((unsigned *)o + 63, 1u) == 1;
  }
  __syncthreads();
  if (last && t == 0)
    o[0] = o[1] + o[2];
