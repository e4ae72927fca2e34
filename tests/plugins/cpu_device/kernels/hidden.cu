// ==== an atomic beside a plain read
// fault: a race in shared memory
// words: one by an atomic operation and one without
  if (t == 0)
    s[0] = 0;
  __syncthreads();
  atomicAdd(s, 1.0f);  // other
  if (t == 40)
    o[0] = s[0];  // here

// ==== an atomic before it is made
// fault: a race in shared memory
// words: one by an atomic operation and one without
  if (t == 0)
    s[0] = 0;  // other
  if (t == 1)
    atomicAdd(s, 1.0f);  // here

// ==== blocks: an atomic beside a plain write
// fault: a race in global memory
// words: one by an atomic operation and one without
  if (t == 0 && blockIdx.x == 0)
    atomicAdd(o, 1.0f);  // other
  if (t == 0 && blockIdx.x == 1)
    o[0] = 7;  // here

// ==== the last of three readers
// fault: a race in shared memory
// words: one reads and one writes
  if (t < 64)
    s[t] = x[t];
  __syncthreads();
  float v = 0;
  if (t == 7)
    v = s[3];  // other
  if (t >= 32 && t < 40)
    v = s[3];
  __syncwarp();
  if (t == 33)
    s[3] = 5;  // here
  if (t < 64)
    o[t] = v;

// ==== arrives, and reads what nobody promised
// fault: a race in shared memory
// words: one reads and one writes
  if (t < 32)
    s[t] = x[t];
  if (t >= 32 && t < 64)
    asm volatile("bar.sync 1, 64;");
  if (t < 32)
    asm volatile("bar.arrive 1, 64;");
  if (t < 32)
    s[t] = 2;  // other
  if (t >= 32 && t < 64)
    o[t] = s[t - 32];  // here

// ==== from one shared array into the next
// fault: a write of 4 bytes outside its array
// words: bytes beyond the end of the shared array s of 256 bytes
  __shared__ float z[64];
  float *p = s;
  if (t < 64)
    z[t] = 1;
  if (t < 64)
    p[t + 1] = x[t];  // here
  __syncthreads();
  if (t < 64)
    o[t] = z[t] + p[t];

// ==== beyond dynamic shared memory
// fault: a write of 4 bytes outside its array
// words: bytes beyond the end of dynamic shared memory of 512 bytes
  extern __shared__ float d[];
  d[t + 33] = x[t & 31];  // here

// ==== dynamic shared memory that nobody wrote
// fault: a read of shared memory that nobody has written
  extern __shared__ float d[];
  if (t < 32)
    d[t] = x[t];
  __syncthreads();
  o[t & 31] = d[t & 63];  // here

// ==== a misaligned vector in shared memory
// fault: a misaligned access
  extern __shared__ float d[];
  d[t] = 0;
  __syncthreads();
  if (t < 4)
    *(float2 *)(d + 2 * t + 1) = make_float2(1, 2);  // here

// ==== a shuffle from a lane that has left
// fault: a shuffle that reads a lane which takes no part in it
  if (t >= 8 && t < 32)
    return;
  o[t & 63] = __shfl_xor_sync(0xffffffffu, x[t & 63], 16);  // here

// ==== a vote of lanes that never come
// fault: a barrier that is not reached by all
  if (t < 16)
    o[t] = __ballot_sync(0xffffffffu, t & 1);  // here
  __syncthreads();  // other
  o[t & 63] = 1;

// ==== a warp's barrier in one branch
// fault: a barrier that is not reached by all
  if (t & 1)
    __syncwarp();  // other
  __syncthreads();  // here

// ==== different masks
// fault: a warp operation that threads reach with different masks
  unsigned m = t & 1 ? 0xffffffffu : 0x55555557u;
  o[t & 63] = __any_sync(m, t);  // here

// ==== different operations
// fault: threads of a warp that wait for each other in different operations
  if (t & 1)
    __syncwarp();  // here
  else
    o[t & 63] = __shfl_xor_sync(0xffffffffu, t, 1);  // other

// ==== a mask without the thread
// fault: a warp operation whose mask leaves out a thread that takes part
  o[t & 63] = __shfl_sync(0x0000ffffu, t, 0);  // here

// ==== a shuffle from a lane that is not there
// fault: a shuffle that reads a lane which takes no part in it
  if ((t & 31) < 16)
    o[t & 63] = __shfl_sync(0x0000ffffu, t, 20);  // here

// ==== the active lanes are not all
// fault: a shuffle that reads a lane which takes no part in it
  if ((t & 31) < 16) {
    unsigned m = __activemask();
    o[t & 63] = __shfl_sync(m, t, 20);  // here
  }

// ==== a float that no integer holds
// fault: a float beyond the range of the integer that it becomes
  float big = x[t & 63] * 1e20f;
  int i;
  i = big;  // here
  o[t & 63] = i;

// ==== a copy that nobody has waited for
// fault: a read of shared memory that nobody has written
  extern __shared__ float d[];
  if (t < 32)
    __pipeline_memcpy_async(d + t, x + t, 4);
  __pipeline_commit();
  __syncthreads();
  o[t & 31] = d[t & 31];  // here

// ==== compare and swap
  unsigned *p = (unsigned *)o, old = *p, seen;
  do {
    seen = old;
    old = atomicCAS(p, seen, seen + 1);
  } while (old != seen);

// ==== an exchange into fresh memory
  unsigned *p = (unsigned *)s;
  if (t < 64)
    atomicExch(p + t, t);
  __syncthreads();
  if (t < 64)
    o[t] = p[t];

// ==== those who arrive and those who wait
  if (t < 32) {
    s[t] = x[t];
    asm volatile("bar.arrive 1, 64;");
  } else if (t < 64) {
    asm volatile("bar.sync 1, 64;");
    o[t] = s[t - 32];
  }

// ==== two that take turns
  for (int i = 0; i < 4; i++) {
    if (t < 32) {
      asm volatile("bar.sync 2, 64;");
      s[t] = x[t] + i;
      asm volatile("bar.arrive 1, 64;");
    } else if (t < 64) {
      asm volatile("bar.arrive 2, 64;");
      asm volatile("bar.sync 1, 64;");
      o[t - 32 * blockIdx.x] = s[63 - t];
    }
  }

// ==== half of a warp, and then all of it
  if (t & 16)
    __syncwarp(0xffff0000u);
  s[t & 63] = 1;
  __syncwarp();
  __syncwarp();

// ==== the lanes that are active
  if (t % 3 == 0) {
    unsigned m = __activemask();
    int first = __ffs(m) - 1;
    o[t & 63] = __shfl_sync(m, 5, first) + __popc(__ballot_sync(m, 1));
  }

// ==== a fence and a ticket within a block
  __shared__ unsigned count;
  if (t == 0)
    count = 0;
  __syncthreads();
  if (t < 64) {
    s[t] = x[t];
    __threadfence_block();
    if (atomicAdd(&count, 1u) == 63) {
      float sum = 0;
      for (int i = 0; i < 64; i++)
        sum += s[i];
      o[blockIdx.x] = sum;
    }
  }

// ==== a counter that the last block sets back
  unsigned *p = (unsigned *)o + 63;
  __shared__ bool last;
  if (t == 0)
    last = atomicInc(p, gridDim.x) == gridDim.x - 1;
  __syncthreads();
  if (last && t == 5)
    *p = 0;

// ==== casts that clamp
  const float v = x[t & 15] * 1e20f;
  if (t < 16) {
    o[t] = (int)v;
    o[t + 16] = static_cast<unsigned char>(v);
    const long long l = int(-v);
    o[t + 32] = l;
  }
