// Values that belong to one thread, one moment or one place: no kernel that uses them is shared out anew.
// read: refusal

// case: a call of the language
// with: around = '''
// with: __device__ int state;
// with: extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
// with: const int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < rows * d) out[i] = x[i] * VALUE;
// with: }'''
// with: launch = { grid = ["ceildiv(rows * d, 32)"], block = ["32"] }
// each line
__lane_id()  // want: not read: line 3: __lane_id is called, which says which thread asks, other than by threadIdx and blockIdx
clock()  // want: not read: line 3: clock is called, which depends on the time
clock64()  // want: not read: line 3: clock64 is called, which depends on the time
wall_clock64()  // want: not read: line 3: wall_clock64 is called, which depends on the time
globaltimer()  // want: not read: line 3: globaltimer is called, which depends on the time
__smid()  // want: not read: line 3: __smid is called, which depends on where in the machine it runs
__clusterIdx().x  // want: not read: line 3: __clusterIdx is called, which says which thread asks, other than by threadIdx and blockIdx
__activemask()  // want: not read: threads cooperate other than by totals over a row's elements: line 3: a branch depends on the thread and on a size at once
__any_sync(~0u, threadIdx.x)  // want: not read: threads cooperate other than by totals over a row's elements: line 3: a branch depends on the thread and on a size at once
__all_sync(~0u, threadIdx.x)  // want: not read: threads cooperate other than by totals over a row's elements: line 3: a branch depends on the thread and on a size at once
__ballot_sync(~0u, threadIdx.x)  // want: not read: threads cooperate other than by totals over a row's elements: line 3: a branch depends on the thread and on a size at once
__ballot(threadIdx.x)  // want: not read: threads cooperate other than by totals over a row's elements: line 3: a branch depends on the thread and on a size at once
__shfl_sync(~0u, threadIdx.x, 0)  // want: not read: threads cooperate other than by totals over a row's elements: line 3: a branch depends on the thread and on a size at once
__shfl(threadIdx.x, 0)  // want: not read: threads cooperate other than by totals over a row's elements: line 3: a branch depends on the thread and on a size at once
__match_any_sync(~0u, threadIdx.x)  // want: not read: threads cooperate other than by totals over a row's elements: line 3: a branch depends on the thread and on a size at once
__reduce_add_sync(~0u, threadIdx.x)  // want: not read: threads cooperate other than by totals over a row's elements: line 3: a branch depends on the thread and on a size at once
__syncthreads_count(1)  // want: not read: threads cooperate other than by totals over a row's elements: line 3: a branch depends on the thread and on a size at once
__builtin_amdgcn_workitem_id_x()  // want: not read: line 3: __builtin_amdgcn_workitem_id_x is called, which says which thread asks, other than by threadIdx and blockIdx
__builtin_amdgcn_s_memtime()  // want: not read: line 3: __builtin_amdgcn_s_memtime is called, which depends on the time
__builtin_amdgcn_readfirstlane(1)  // want: not read: threads cooperate other than by totals over a row's elements: line 3: a branch depends on the thread and on a size at once
__builtin_amdgcn_mbcnt_lo(~0u, 0)  // want: not read: line 3: __builtin_amdgcn_mbcnt_lo is called, which says which thread asks, other than by threadIdx and blockIdx
__builtin_amdgcn_ballot_w64(1)  // want: not read: threads cooperate other than by totals over a row's elements: line 3: a branch depends on the thread and on a size at once
__builtin_amdgcn_s_getreg(2)  // want: not read: line 3: __builtin_amdgcn_s_getreg is called, which depends on where in the machine it runs
__ldcv(&x[0])  // want: not read: line 3: __ldcv is called, which must happen as written: it is volatile
curand(&state)  // want: not read: line 3: curand is called, which moves on a state of random numbers
__unheard_of(1)  // want: not read: line 3: __unheard_of is called, whose text is not in the file

// case: a helper with a call of the language
// long
// with: around = '''
// with: __device__ int state; __device__ float h() { return VALUE; }
// with: extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
// with: const int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < rows * d) out[i] = x[i] * h();
// with: }'''
// with: launch = { grid = ["ceildiv(rows * d, 32)"], block = ["32"] }
// each line
__lane_id()  // want: not read: line 3: __lane_id is called, which says which thread asks, other than by threadIdx and blockIdx
clock()  // want: not read: line 3: clock is called, which depends on the time
clock64()  // want: not read: line 3: clock64 is called, which depends on the time
wall_clock64()  // want: not read: line 3: wall_clock64 is called, which depends on the time
globaltimer()  // want: not read: line 3: globaltimer is called, which depends on the time
__smid()  // want: not read: line 3: __smid is called, which depends on where in the machine it runs
__clusterIdx().x  // want: not read: line 3: __clusterIdx is called, which says which thread asks, other than by threadIdx and blockIdx
__activemask()  // want: not read: threads cooperate other than by totals over a row's elements: line 3: a branch depends on the thread and on a size at once
__any_sync(~0u, threadIdx.x)  // want: not read: threads cooperate other than by totals over a row's elements: line 3: a branch depends on the thread and on a size at once
__all_sync(~0u, threadIdx.x)  // want: not read: threads cooperate other than by totals over a row's elements: line 3: a branch depends on the thread and on a size at once
__ballot_sync(~0u, threadIdx.x)  // want: not read: threads cooperate other than by totals over a row's elements: line 3: a branch depends on the thread and on a size at once
__ballot(threadIdx.x)  // want: not read: threads cooperate other than by totals over a row's elements: line 3: a branch depends on the thread and on a size at once
__shfl_sync(~0u, threadIdx.x, 0)  // want: not read: threads cooperate other than by totals over a row's elements: line 3: a branch depends on the thread and on a size at once
__shfl(threadIdx.x, 0)  // want: not read: threads cooperate other than by totals over a row's elements: line 3: a branch depends on the thread and on a size at once
__match_any_sync(~0u, threadIdx.x)  // want: not read: threads cooperate other than by totals over a row's elements: line 3: a branch depends on the thread and on a size at once
__reduce_add_sync(~0u, threadIdx.x)  // want: not read: threads cooperate other than by totals over a row's elements: line 3: a branch depends on the thread and on a size at once
__syncthreads_count(1)  // want: not read: threads cooperate other than by totals over a row's elements: line 3: a branch depends on the thread and on a size at once
__builtin_amdgcn_workitem_id_x()  // want: not read: line 3: __builtin_amdgcn_workitem_id_x is called, which says which thread asks, other than by threadIdx and blockIdx
__builtin_amdgcn_s_memtime()  // want: not read: line 3: __builtin_amdgcn_s_memtime is called, which depends on the time
__builtin_amdgcn_readfirstlane(1)  // want: not read: threads cooperate other than by totals over a row's elements: line 3: a branch depends on the thread and on a size at once
__builtin_amdgcn_mbcnt_lo(~0u, 0)  // want: not read: line 3: __builtin_amdgcn_mbcnt_lo is called, which says which thread asks, other than by threadIdx and blockIdx
__builtin_amdgcn_ballot_w64(1)  // want: not read: threads cooperate other than by totals over a row's elements: line 3: a branch depends on the thread and on a size at once
__builtin_amdgcn_s_getreg(2)  // want: not read: line 3: __builtin_amdgcn_s_getreg is called, which depends on where in the machine it runs
__ldcv(&state)  // want: not read: line 3: __ldcv is called, which must happen as written: it is volatile
curand(&state)  // want: not read: line 3: curand is called, which moves on a state of random numbers
__unheard_of(1)  // want: not read: line 3: __unheard_of is called, whose text is not in the file
