// Values that belong to one thread, one moment or one place: no kernel that uses them is shared out anew.
// read: refusal

// case: a helper that reads a special register, flat
// with: around = '''
// with: __device__ float h() { unsigned l; asm("mov.u32 %0, %%VALUE;" : "=r"(l)); return l; }
// with: extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
// with: const int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < rows * d) out[i] = x[i] * h();
// with: }'''
// with: launch = { grid = ["ceildiv(rows * d, 32)"], block = ["32"] }
// each line
laneid  // want: not read: line 1: 'asm("mov.u32 %0, %%laneid;" : "=r"(l));' is not understood, and it contains assembly that reads %laneid
lanemask_lt  // want: not read: line 1: 'asm("mov.u32 %0, %%lanemask_lt;" : "=r"(l));' is not understood, and it contains assembly that reads %lanemask_lt
lanemask_eq  // want: not read: line 1: 'asm("mov.u32 %0, %%lanemask_eq;" : "=r"(l));' is not understood, and it contains assembly that reads %lanemask_eq
tid.x  // want: not read: line 1: 'asm("mov.u32 %0, %%tid.x;" : "=r"(l));' is not understood, and it contains assembly that reads %tid
ctaid.x  // want: not read: line 1: 'asm("mov.u32 %0, %%ctaid.x;" : "=r"(l));' is not understood, and it contains assembly that reads %ctaid
ntid.x  // want: not read: line 1: 'asm("mov.u32 %0, %%ntid.x;" : "=r"(l));' is not understood, and it contains assembly that reads %ntid
nctaid.x  // want: not read: line 1: 'asm("mov.u32 %0, %%nctaid.x;" : "=r"(l));' is not understood, and it contains assembly that reads %nctaid
warpid  // want: not read: line 1: 'asm("mov.u32 %0, %%warpid;" : "=r"(l));' is not understood, and it contains assembly that reads %warpid
nwarpid  // want: not read: line 1: 'asm("mov.u32 %0, %%nwarpid;" : "=r"(l));' is not understood, and it contains assembly that reads %nwarpid
smid  // want: not read: line 1: 'asm("mov.u32 %0, %%smid;" : "=r"(l));' is not understood, and it contains assembly that reads %smid
nsmid  // want: not read: line 1: 'asm("mov.u32 %0, %%nsmid;" : "=r"(l));' is not understood, and it contains assembly that reads %nsmid
gridid  // want: not read: line 1: 'asm("mov.u32 %0, %%gridid;" : "=r"(l));' is not understood, and it contains assembly that reads %gridid
clock  // want: not read: line 1: 'asm("mov.u32 %0, %%clock;" : "=r"(l));' is not understood, and it contains assembly that reads %clock
clock64  // want: not read: line 1: 'asm("mov.u32 %0, %%clock64;" : "=r"(l));' is not understood, and it contains assembly that reads %clock64
clock_hi  // want: not read: line 1: 'asm("mov.u32 %0, %%clock_hi;" : "=r"(l));' is not understood, and it contains assembly that reads %clock_hi
globaltimer  // want: not read: line 1: 'asm("mov.u32 %0, %%globaltimer;" : "=r"(l));' is not understood, and it contains assembly that reads %globaltimer
globaltimer_lo  // want: not read: line 1: 'asm("mov.u32 %0, %%globaltimer_lo;" : "=r"(l));' is not understood, and it contains assembly that reads %globaltimer_lo
envreg1  // want: not read: line 1: 'asm("mov.u32 %0, %%envreg1;" : "=r"(l));' is not understood, and it contains assembly that reads %envreg1
pm0  // want: not read: line 1: 'asm("mov.u32 %0, %%pm0;" : "=r"(l));' is not understood, and it contains assembly that reads %pm0
cluster_ctarank  // want: not read: line 1: 'asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(l));' is not understood, and it contains assembly that reads %cluster_ctarank
clusterid.x  // want: not read: line 1: 'asm("mov.u32 %0, %%clusterid.x;" : "=r"(l));' is not understood, and it contains assembly that reads %clusterid
dynamic_smem_size  // want: not read: line 1: 'asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(l));' is not understood, and it contains assembly that reads %dynamic_smem_size

// case: a helper with an instruction that does more than compute, flat
// with: around = '''
// with: __device__ float h() { unsigned l; VALUE return l; }
// with: extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
// with: const int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < rows * d) out[i] = x[i] * h();
// with: }'''
// with: launch = { grid = ["ceildiv(rows * d, 32)"], block = ["32"] }
// each line
// a vote
asm("{.reg .pred p; vote.sync.any.pred p, 1, -1; selp.u32 %0, 1, 0, p;}" : "=r"(l));  // want: not read: line 1: 'asm("{.reg .pred p; vote.sync.any.pred p, 1, -1; selp.u32...' is not understood, and it contains assembly: vote.sync.any.pred
// a ballot
asm("vote.sync.ballot.b32 %0, 1, -1;" : "=r"(l));  // want: not read: line 1: 'asm("vote.sync.ballot.b32 %0, 1, -1;" : "=r"(l));' is not understood, and it contains assembly: vote.sync.ballot.b32
// a shuffle
asm("shfl.sync.idx.b32 %0, 1, 0, 31, -1;" : "=r"(l));  // want: not read: line 1: 'asm("shfl.sync.idx.b32 %0, 1, 0, 31, -1;" : "=r"(l));' is not understood, and it contains assembly: shfl.sync.idx.b32
// the mask
asm("activemask.b32 %0;" : "=r"(l));  // want: not read: line 1: 'asm("activemask.b32 %0;" : "=r"(l));' is not understood, and it contains assembly: activemask.b32
// a match
asm("match.any.sync.b32 %0, 1, -1;" : "=r"(l));  // want: not read: line 1: 'asm("match.any.sync.b32 %0, 1, -1;" : "=r"(l));' is not understood, and it contains assembly: match.any.sync.b32
// a reduction
asm("redux.sync.add.u32 %0, 1, -1;" : "=r"(l));  // want: not read: line 1: 'asm("redux.sync.add.u32 %0, 1, -1;" : "=r"(l));' is not understood, and it contains assembly: redux.sync.add.u32
// an election
asm("{.reg .pred p; elect.sync _|p, -1; selp.u32 %0, 1, 0, p;}" : "=r"(l));  // want: not read: line 1: 'asm("{.reg .pred p; elect.sync _|p, -1; selp.u32 %0, 1, 0...' is not understood, and it contains assembly: elect.sync
// a barrier
l = 1; asm volatile("bar.sync 0;");  // want: not read: line 1: 'asm volatile("bar.sync 0;");' is not understood, and it contains assembly: bar.sync
// a fence
l = 1; asm volatile("fence.acq_rel.gpu;");  // want: not read: line 1: 'asm volatile("fence.acq_rel.gpu;");' is not understood, and it contains assembly: fence.acq_rel.gpu
// a clobber
l = 1; asm volatile("" ::: "memory");  // want: not read: line 1: 'asm volatile("" ::: "memory");' is not understood, and it contains assembly that orders memory
// a load
asm volatile("ld.volatile.shared.u32 %0, [0];" : "=r"(l));  // want: not read: line 1: 'asm volatile("ld.volatile.shared.u32 %0, [0];" : "=r"(l));' is not understood, and it contains assembly: ld.volatile.shared.u32
// an atomic
asm volatile("atom.shared.add.u32 %0, [0], 1;" : "=r"(l));  // want: not read: line 1: 'asm volatile("atom.shared.add.u32 %0, [0], 1;" : "=r"(l));' is not understood, and it contains assembly: atom.shared.add.u32
// what nobody knows
asm("frobnicate.u32 %0;" : "=r"(l));  // want: not read: line 1: 'asm("frobnicate.u32 %0;" : "=r"(l));' is not understood, and it contains assembly whose 'frobnicate.u32' is not known

// case: a call of the language, flat
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

// case: a helper with a call of the language, flat
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

// case: a helper that reads a special register, a loop over elements
// long
// with: around = '''
// with: __device__ float h() { unsigned l; asm("mov.u32 %0, %%VALUE;" : "=r"(l)); return l; }
// with: extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
// with: const int r = blockIdx.x * d; float s = 0; for (int i = threadIdx.x; i < d; i += 32) s += x[r + i];
// with: for (int o = 16; o > 0; o /= 2) s += __shfl_xor_sync(~0u, s, o);
// with: for (int i = threadIdx.x; i < d; i += 32) out[r + i] = s * h();
// with: }'''
// with: launch = { grid = ["rows"], block = ["32"] }
// each line
laneid  // want: not read: line 1: 'asm("mov.u32 %0, %%laneid;" : "=r"(l));' is not understood, and it contains assembly that reads %laneid
lanemask_lt  // want: not read: line 1: 'asm("mov.u32 %0, %%lanemask_lt;" : "=r"(l));' is not understood, and it contains assembly that reads %lanemask_lt
lanemask_eq  // want: not read: line 1: 'asm("mov.u32 %0, %%lanemask_eq;" : "=r"(l));' is not understood, and it contains assembly that reads %lanemask_eq
tid.x  // want: not read: line 1: 'asm("mov.u32 %0, %%tid.x;" : "=r"(l));' is not understood, and it contains assembly that reads %tid
ctaid.x  // want: not read: line 1: 'asm("mov.u32 %0, %%ctaid.x;" : "=r"(l));' is not understood, and it contains assembly that reads %ctaid
ntid.x  // want: not read: line 1: 'asm("mov.u32 %0, %%ntid.x;" : "=r"(l));' is not understood, and it contains assembly that reads %ntid
nctaid.x  // want: not read: line 1: 'asm("mov.u32 %0, %%nctaid.x;" : "=r"(l));' is not understood, and it contains assembly that reads %nctaid
warpid  // want: not read: line 1: 'asm("mov.u32 %0, %%warpid;" : "=r"(l));' is not understood, and it contains assembly that reads %warpid
nwarpid  // want: not read: line 1: 'asm("mov.u32 %0, %%nwarpid;" : "=r"(l));' is not understood, and it contains assembly that reads %nwarpid
smid  // want: not read: line 1: 'asm("mov.u32 %0, %%smid;" : "=r"(l));' is not understood, and it contains assembly that reads %smid
nsmid  // want: not read: line 1: 'asm("mov.u32 %0, %%nsmid;" : "=r"(l));' is not understood, and it contains assembly that reads %nsmid
gridid  // want: not read: line 1: 'asm("mov.u32 %0, %%gridid;" : "=r"(l));' is not understood, and it contains assembly that reads %gridid
clock  // want: not read: line 1: 'asm("mov.u32 %0, %%clock;" : "=r"(l));' is not understood, and it contains assembly that reads %clock
clock64  // want: not read: line 1: 'asm("mov.u32 %0, %%clock64;" : "=r"(l));' is not understood, and it contains assembly that reads %clock64
clock_hi  // want: not read: line 1: 'asm("mov.u32 %0, %%clock_hi;" : "=r"(l));' is not understood, and it contains assembly that reads %clock_hi
globaltimer  // want: not read: line 1: 'asm("mov.u32 %0, %%globaltimer;" : "=r"(l));' is not understood, and it contains assembly that reads %globaltimer
globaltimer_lo  // want: not read: line 1: 'asm("mov.u32 %0, %%globaltimer_lo;" : "=r"(l));' is not understood, and it contains assembly that reads %globaltimer_lo
envreg1  // want: not read: line 1: 'asm("mov.u32 %0, %%envreg1;" : "=r"(l));' is not understood, and it contains assembly that reads %envreg1
pm0  // want: not read: line 1: 'asm("mov.u32 %0, %%pm0;" : "=r"(l));' is not understood, and it contains assembly that reads %pm0
cluster_ctarank  // want: not read: line 1: 'asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(l));' is not understood, and it contains assembly that reads %cluster_ctarank
clusterid.x  // want: not read: line 1: 'asm("mov.u32 %0, %%clusterid.x;" : "=r"(l));' is not understood, and it contains assembly that reads %clusterid
dynamic_smem_size  // want: not read: line 1: 'asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(l));' is not understood, and it contains assembly that reads %dynamic_smem_size

// case: a helper with an instruction that does more than compute, a loop over elements
// long
// with: around = '''
// with: __device__ float h() { unsigned l; VALUE return l; }
// with: extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
// with: const int r = blockIdx.x * d; float s = 0; for (int i = threadIdx.x; i < d; i += 32) s += x[r + i];
// with: for (int o = 16; o > 0; o /= 2) s += __shfl_xor_sync(~0u, s, o);
// with: for (int i = threadIdx.x; i < d; i += 32) out[r + i] = s * h();
// with: }'''
// with: launch = { grid = ["rows"], block = ["32"] }
// each line
// a vote
asm("{.reg .pred p; vote.sync.any.pred p, 1, -1; selp.u32 %0, 1, 0, p;}" : "=r"(l));  // want: not read: line 1: 'asm("{.reg .pred p; vote.sync.any.pred p, 1, -1; selp.u32...' is not understood, and it contains assembly: vote.sync.any.pred
// a ballot
asm("vote.sync.ballot.b32 %0, 1, -1;" : "=r"(l));  // want: not read: line 1: 'asm("vote.sync.ballot.b32 %0, 1, -1;" : "=r"(l));' is not understood, and it contains assembly: vote.sync.ballot.b32
// a shuffle
asm("shfl.sync.idx.b32 %0, 1, 0, 31, -1;" : "=r"(l));  // want: not read: line 1: 'asm("shfl.sync.idx.b32 %0, 1, 0, 31, -1;" : "=r"(l));' is not understood, and it contains assembly: shfl.sync.idx.b32
// the mask
asm("activemask.b32 %0;" : "=r"(l));  // want: not read: line 1: 'asm("activemask.b32 %0;" : "=r"(l));' is not understood, and it contains assembly: activemask.b32
// a match
asm("match.any.sync.b32 %0, 1, -1;" : "=r"(l));  // want: not read: line 1: 'asm("match.any.sync.b32 %0, 1, -1;" : "=r"(l));' is not understood, and it contains assembly: match.any.sync.b32
// a reduction
asm("redux.sync.add.u32 %0, 1, -1;" : "=r"(l));  // want: not read: line 1: 'asm("redux.sync.add.u32 %0, 1, -1;" : "=r"(l));' is not understood, and it contains assembly: redux.sync.add.u32
// an election
asm("{.reg .pred p; elect.sync _|p, -1; selp.u32 %0, 1, 0, p;}" : "=r"(l));  // want: not read: line 1: 'asm("{.reg .pred p; elect.sync _|p, -1; selp.u32 %0, 1, 0...' is not understood, and it contains assembly: elect.sync
// a barrier
l = 1; asm volatile("bar.sync 0;");  // want: not read: line 1: 'asm volatile("bar.sync 0;");' is not understood, and it contains assembly: bar.sync
// a fence
l = 1; asm volatile("fence.acq_rel.gpu;");  // want: not read: line 1: 'asm volatile("fence.acq_rel.gpu;");' is not understood, and it contains assembly: fence.acq_rel.gpu
// a clobber
l = 1; asm volatile("" ::: "memory");  // want: not read: line 1: 'asm volatile("" ::: "memory");' is not understood, and it contains assembly that orders memory
// a load
asm volatile("ld.volatile.shared.u32 %0, [0];" : "=r"(l));  // want: not read: line 1: 'asm volatile("ld.volatile.shared.u32 %0, [0];" : "=r"(l));' is not understood, and it contains assembly: ld.volatile.shared.u32
// an atomic
asm volatile("atom.shared.add.u32 %0, [0], 1;" : "=r"(l));  // want: not read: line 1: 'asm volatile("atom.shared.add.u32 %0, [0], 1;" : "=r"(l));' is not understood, and it contains assembly: atom.shared.add.u32
// what nobody knows
asm("frobnicate.u32 %0;" : "=r"(l));  // want: not read: line 1: 'asm("frobnicate.u32 %0;" : "=r"(l));' is not understood, and it contains assembly whose 'frobnicate.u32' is not known

// case: a helper that reads a special register, one thread stores
// long
// with: around = '''
// with: __device__ float h() { unsigned l; asm("mov.u32 %0, %%VALUE;" : "=r"(l)); return l; }
// with: extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
// with: const int r = blockIdx.x * d; float s = 0; for (int i = threadIdx.x; i < d; i += 32) s += x[r + i];
// with: for (int o = 16; o > 0; o /= 2) s += __shfl_xor_sync(~0u, s, o);
// with: if (threadIdx.x == 0) out[r] = s * h();
// with: }'''
// with: launch = { grid = ["rows"], block = ["32"] }
// each line
laneid  // want: not read: line 1: 'asm("mov.u32 %0, %%laneid;" : "=r"(l));' is not understood, and it contains assembly that reads %laneid
lanemask_lt  // want: not read: line 1: 'asm("mov.u32 %0, %%lanemask_lt;" : "=r"(l));' is not understood, and it contains assembly that reads %lanemask_lt
lanemask_eq  // want: not read: line 1: 'asm("mov.u32 %0, %%lanemask_eq;" : "=r"(l));' is not understood, and it contains assembly that reads %lanemask_eq
tid.x  // want: not read: line 1: 'asm("mov.u32 %0, %%tid.x;" : "=r"(l));' is not understood, and it contains assembly that reads %tid
ctaid.x  // want: not read: line 1: 'asm("mov.u32 %0, %%ctaid.x;" : "=r"(l));' is not understood, and it contains assembly that reads %ctaid
ntid.x  // want: not read: line 1: 'asm("mov.u32 %0, %%ntid.x;" : "=r"(l));' is not understood, and it contains assembly that reads %ntid
nctaid.x  // want: not read: line 1: 'asm("mov.u32 %0, %%nctaid.x;" : "=r"(l));' is not understood, and it contains assembly that reads %nctaid
warpid  // want: not read: line 1: 'asm("mov.u32 %0, %%warpid;" : "=r"(l));' is not understood, and it contains assembly that reads %warpid
nwarpid  // want: not read: line 1: 'asm("mov.u32 %0, %%nwarpid;" : "=r"(l));' is not understood, and it contains assembly that reads %nwarpid
smid  // want: not read: line 1: 'asm("mov.u32 %0, %%smid;" : "=r"(l));' is not understood, and it contains assembly that reads %smid
nsmid  // want: not read: line 1: 'asm("mov.u32 %0, %%nsmid;" : "=r"(l));' is not understood, and it contains assembly that reads %nsmid
gridid  // want: not read: line 1: 'asm("mov.u32 %0, %%gridid;" : "=r"(l));' is not understood, and it contains assembly that reads %gridid
clock  // want: not read: line 1: 'asm("mov.u32 %0, %%clock;" : "=r"(l));' is not understood, and it contains assembly that reads %clock
clock64  // want: not read: line 1: 'asm("mov.u32 %0, %%clock64;" : "=r"(l));' is not understood, and it contains assembly that reads %clock64
clock_hi  // want: not read: line 1: 'asm("mov.u32 %0, %%clock_hi;" : "=r"(l));' is not understood, and it contains assembly that reads %clock_hi
globaltimer  // want: not read: line 1: 'asm("mov.u32 %0, %%globaltimer;" : "=r"(l));' is not understood, and it contains assembly that reads %globaltimer
globaltimer_lo  // want: not read: line 1: 'asm("mov.u32 %0, %%globaltimer_lo;" : "=r"(l));' is not understood, and it contains assembly that reads %globaltimer_lo
envreg1  // want: not read: line 1: 'asm("mov.u32 %0, %%envreg1;" : "=r"(l));' is not understood, and it contains assembly that reads %envreg1
pm0  // want: not read: line 1: 'asm("mov.u32 %0, %%pm0;" : "=r"(l));' is not understood, and it contains assembly that reads %pm0
cluster_ctarank  // want: not read: line 1: 'asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(l));' is not understood, and it contains assembly that reads %cluster_ctarank
clusterid.x  // want: not read: line 1: 'asm("mov.u32 %0, %%clusterid.x;" : "=r"(l));' is not understood, and it contains assembly that reads %clusterid
dynamic_smem_size  // want: not read: line 1: 'asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(l));' is not understood, and it contains assembly that reads %dynamic_smem_size

// case: a helper with an instruction that does more than compute, one thread stores
// long
// with: around = '''
// with: __device__ float h() { unsigned l; VALUE return l; }
// with: extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
// with: const int r = blockIdx.x * d; float s = 0; for (int i = threadIdx.x; i < d; i += 32) s += x[r + i];
// with: for (int o = 16; o > 0; o /= 2) s += __shfl_xor_sync(~0u, s, o);
// with: if (threadIdx.x == 0) out[r] = s * h();
// with: }'''
// with: launch = { grid = ["rows"], block = ["32"] }
// each line
// a vote
asm("{.reg .pred p; vote.sync.any.pred p, 1, -1; selp.u32 %0, 1, 0, p;}" : "=r"(l));  // want: not read: line 1: 'asm("{.reg .pred p; vote.sync.any.pred p, 1, -1; selp.u32...' is not understood, and it contains assembly: vote.sync.any.pred
// a ballot
asm("vote.sync.ballot.b32 %0, 1, -1;" : "=r"(l));  // want: not read: line 1: 'asm("vote.sync.ballot.b32 %0, 1, -1;" : "=r"(l));' is not understood, and it contains assembly: vote.sync.ballot.b32
// a shuffle
asm("shfl.sync.idx.b32 %0, 1, 0, 31, -1;" : "=r"(l));  // want: not read: line 1: 'asm("shfl.sync.idx.b32 %0, 1, 0, 31, -1;" : "=r"(l));' is not understood, and it contains assembly: shfl.sync.idx.b32
// the mask
asm("activemask.b32 %0;" : "=r"(l));  // want: not read: line 1: 'asm("activemask.b32 %0;" : "=r"(l));' is not understood, and it contains assembly: activemask.b32
// a match
asm("match.any.sync.b32 %0, 1, -1;" : "=r"(l));  // want: not read: line 1: 'asm("match.any.sync.b32 %0, 1, -1;" : "=r"(l));' is not understood, and it contains assembly: match.any.sync.b32
// a reduction
asm("redux.sync.add.u32 %0, 1, -1;" : "=r"(l));  // want: not read: line 1: 'asm("redux.sync.add.u32 %0, 1, -1;" : "=r"(l));' is not understood, and it contains assembly: redux.sync.add.u32
// an election
asm("{.reg .pred p; elect.sync _|p, -1; selp.u32 %0, 1, 0, p;}" : "=r"(l));  // want: not read: line 1: 'asm("{.reg .pred p; elect.sync _|p, -1; selp.u32 %0, 1, 0...' is not understood, and it contains assembly: elect.sync
// a barrier
l = 1; asm volatile("bar.sync 0;");  // want: not read: line 1: 'asm volatile("bar.sync 0;");' is not understood, and it contains assembly: bar.sync
// a fence
l = 1; asm volatile("fence.acq_rel.gpu;");  // want: not read: line 1: 'asm volatile("fence.acq_rel.gpu;");' is not understood, and it contains assembly: fence.acq_rel.gpu
// a clobber
l = 1; asm volatile("" ::: "memory");  // want: not read: line 1: 'asm volatile("" ::: "memory");' is not understood, and it contains assembly that orders memory
// a load
asm volatile("ld.volatile.shared.u32 %0, [0];" : "=r"(l));  // want: not read: line 1: 'asm volatile("ld.volatile.shared.u32 %0, [0];" : "=r"(l));' is not understood, and it contains assembly: ld.volatile.shared.u32
// an atomic
asm volatile("atom.shared.add.u32 %0, [0], 1;" : "=r"(l));  // want: not read: line 1: 'asm volatile("atom.shared.add.u32 %0, [0], 1;" : "=r"(l));' is not understood, and it contains assembly: atom.shared.add.u32
// what nobody knows
asm("frobnicate.u32 %0;" : "=r"(l));  // want: not read: line 1: 'asm("frobnicate.u32 %0;" : "=r"(l));' is not understood, and it contains assembly whose 'frobnicate.u32' is not known

// case: a call of the language, one thread stores
// long
// with: around = '''
// with: __device__ int state;
// with: extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
// with: const int r = blockIdx.x * d; float s = 0; for (int i = threadIdx.x; i < d; i += 32) s += x[r + i];
// with: for (int o = 16; o > 0; o /= 2) s += __shfl_xor_sync(~0u, s, o);
// with: if (threadIdx.x == 0) out[r] = s * VALUE;
// with: }'''
// with: launch = { grid = ["rows"], block = ["32"] }
// each line
__lane_id()  // want: not read: line 5: __lane_id is called, which says which thread asks, other than by threadIdx and blockIdx
clock()  // want: not read: line 5: clock is called, which depends on the time
clock64()  // want: not read: line 5: clock64 is called, which depends on the time
wall_clock64()  // want: not read: line 5: wall_clock64 is called, which depends on the time
globaltimer()  // want: not read: line 5: globaltimer is called, which depends on the time
__smid()  // want: not read: line 5: __smid is called, which depends on where in the machine it runs
__clusterIdx().x  // want: not read: line 5: __clusterIdx is called, which says which thread asks, other than by threadIdx and blockIdx
__activemask()  // want: not read: line 5: the call of '__activemask' inside an expression is not followed
__any_sync(~0u, threadIdx.x)  // want: not read: line 5: the call of '__any_sync' inside an expression is not followed
__all_sync(~0u, threadIdx.x)  // want: not read: line 5: the call of '__all_sync' inside an expression is not followed
__ballot_sync(~0u, threadIdx.x)  // want: not read: line 5: the call of '__ballot_sync' inside an expression is not followed
__ballot(threadIdx.x)  // want: not read: line 5: the call of '__ballot' inside an expression is not followed
__shfl_sync(~0u, threadIdx.x, 0)  // want: not read: line 5: what is stored to 'out' is not the same for the team: a value that differs from thread to thread
__shfl(threadIdx.x, 0)  // want: not read: line 5: what is stored to 'out' is not the same for the team: a value that differs from thread to thread
__match_any_sync(~0u, threadIdx.x)  // want: not read: line 5: the call of '__match_any_sync' inside an expression is not followed
__reduce_add_sync(~0u, threadIdx.x)  // want: not read: line 5: a mask that is not just the threads of the warp that are here
__syncthreads_count(1)  // want: not read: line 5: the call of '__syncthreads_count' inside an expression is not followed
__builtin_amdgcn_workitem_id_x()  // want: not read: line 5: __builtin_amdgcn_workitem_id_x is called, which says which thread asks, other than by threadIdx and blockIdx
__builtin_amdgcn_s_memtime()  // want: not read: line 5: __builtin_amdgcn_s_memtime is called, which depends on the time
__builtin_amdgcn_readfirstlane(1)  // want: not read: line 5: the call of '__builtin_amdgcn_readfirstlane' inside an expression is not followed
__builtin_amdgcn_mbcnt_lo(~0u, 0)  // want: not read: line 5: __builtin_amdgcn_mbcnt_lo is called, which says which thread asks, other than by threadIdx and blockIdx
__builtin_amdgcn_ballot_w64(1)  // want: not read: line 5: the call of '__builtin_amdgcn_ballot_w64' inside an expression is not followed
__builtin_amdgcn_s_getreg(2)  // want: not read: line 5: __builtin_amdgcn_s_getreg is called, which depends on where in the machine it runs
__ldcv(&x[0])  // want: not read: line 5: __ldcv is called, which must happen as written: it is volatile
curand(&state)  // want: not read: line 5: curand is called, which moves on a state of random numbers
__unheard_of(1)  // want: not read: line 5: __unheard_of is called, whose text is not in the file

// case: a helper with a call of the language, one thread stores
// long
// with: around = '''
// with: __device__ int state; __device__ float h() { return VALUE; }
// with: extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
// with: const int r = blockIdx.x * d; float s = 0; for (int i = threadIdx.x; i < d; i += 32) s += x[r + i];
// with: for (int o = 16; o > 0; o /= 2) s += __shfl_xor_sync(~0u, s, o);
// with: if (threadIdx.x == 0) out[r] = s * h();
// with: }'''
// with: launch = { grid = ["rows"], block = ["32"] }
// each line
__lane_id()  // want: not read: line 5: __lane_id is called, which says which thread asks, other than by threadIdx and blockIdx
clock()  // want: not read: line 5: clock is called, which depends on the time
clock64()  // want: not read: line 5: clock64 is called, which depends on the time
wall_clock64()  // want: not read: line 5: wall_clock64 is called, which depends on the time
globaltimer()  // want: not read: line 5: globaltimer is called, which depends on the time
__smid()  // want: not read: line 5: __smid is called, which depends on where in the machine it runs
__clusterIdx().x  // want: not read: line 5: __clusterIdx is called, which says which thread asks, other than by threadIdx and blockIdx
__activemask()  // want: not read: line 5: the call of '__activemask' inside an expression is not followed
__any_sync(~0u, threadIdx.x)  // want: not read: line 5: the call of '__any_sync' inside an expression is not followed
__all_sync(~0u, threadIdx.x)  // want: not read: line 5: the call of '__all_sync' inside an expression is not followed
__ballot_sync(~0u, threadIdx.x)  // want: not read: line 5: the call of '__ballot_sync' inside an expression is not followed
__ballot(threadIdx.x)  // want: not read: line 5: the call of '__ballot' inside an expression is not followed
__shfl_sync(~0u, threadIdx.x, 0)  // want: not read: line 5: what is stored to 'out' is not the same for the team: a value that differs from thread to thread
__shfl(threadIdx.x, 0)  // want: not read: line 5: what is stored to 'out' is not the same for the team: a value that differs from thread to thread
__match_any_sync(~0u, threadIdx.x)  // want: not read: line 5: the call of '__match_any_sync' inside an expression is not followed
__reduce_add_sync(~0u, threadIdx.x)  // want: not read: line 5: a mask that is not just the threads of the warp that are here
__syncthreads_count(1)  // want: not read: line 5: the call of '__syncthreads_count' inside an expression is not followed
__builtin_amdgcn_workitem_id_x()  // want: not read: line 5: __builtin_amdgcn_workitem_id_x is called, which says which thread asks, other than by threadIdx and blockIdx
__builtin_amdgcn_s_memtime()  // want: not read: line 5: __builtin_amdgcn_s_memtime is called, which depends on the time
__builtin_amdgcn_readfirstlane(1)  // want: not read: line 5: the call of '__builtin_amdgcn_readfirstlane' inside an expression is not followed
__builtin_amdgcn_mbcnt_lo(~0u, 0)  // want: not read: line 5: __builtin_amdgcn_mbcnt_lo is called, which says which thread asks, other than by threadIdx and blockIdx
__builtin_amdgcn_ballot_w64(1)  // want: not read: line 5: the call of '__builtin_amdgcn_ballot_w64' inside an expression is not followed
__builtin_amdgcn_s_getreg(2)  // want: not read: line 5: __builtin_amdgcn_s_getreg is called, which depends on where in the machine it runs
__ldcv(&state)  // want: not read: line 5: __ldcv is called, which must happen as written: it is volatile
curand(&state)  // want: not read: line 5: curand is called, which moves on a state of random numbers
__unheard_of(1)  // want: not read: line 5: __unheard_of is called, whose text is not in the file
