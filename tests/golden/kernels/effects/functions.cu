// What functions of the languages and their libraries do; those of a line do the same.
// read: effects of functions

// case: functions
// each line
expf __expf sqrt fmaxf max min __fdividef __half2float __float2half_rn  // want: none
__float22half2_rn __hmul2 hexp h2exp __popc __clz __byte_perm __dp4a  // want: none
__umulhi __fmaf_rn make_float4 convert_float4_rte as_uint native_exp  // want: none
std::max cuda::std::isnan __nv_cvt_float_to_fp8 __ocml_exp_f32  // want: none
__builtin_amdgcn_rcpf mad24 clamp dot  // want: none
__ldg __ldcs vload4 vload_half tex2D read_imagef  // want: READS
__stcs vstore4 vstore_half write_imagef  // want: WRITES
sincosf modf frexp remquo fract  // want: ASSIGNS
get_global_id get_local_id get_sub_group_local_id get_local_linear_id  // want: THREAD
__lane_id __clusterIdx __builtin_amdgcn_workitem_id_x  // want: THREAD
__builtin_amdgcn_workgroup_id_y __builtin_amdgcn_mbcnt_lo  // want: THREAD
get_local_size get_global_size get_num_groups get_sub_group_size  // want: SHAPE
get_work_dim __clusterDim  // want: SHAPE
clock clock64 __clock64 wall_clock64 globaltimer  // want: TIME
__builtin_readcyclecounter __builtin_amdgcn_s_memtime  // want: TIME
__builtin_amdgcn_s_memrealtime __nanosleep  // want: TIME
__smid __nsmid __warpid __builtin_amdgcn_s_getreg  // want: MACHINE
__nvvm_read_ptx_sreg_smid  // want: MACHINE
__activemask __ballot_sync __ballot __any_sync __any __all_sync  // want: MASK
__shfl_sync __shfl_xor_sync __shfl_down __match_any_sync  // want: MASK
__match_all_sync __reduce_add_sync sub_group_reduce_add sub_group_any  // want: MASK
work_group_broadcast work_group_all sub_group_shuffle  // want: MASK
__builtin_amdgcn_ds_bpermute __builtin_amdgcn_readfirstlane  // want: MASK
__builtin_amdgcn_ballot_w64 __builtin_amdgcn_mov_dpp  // want: MASK
__syncthreads barrier work_group_barrier __builtin_amdgcn_s_barrier  // want: BARRIER
wait_group_events  // want: BARRIER
__syncwarp __syncthreads_or __syncthreads_count sub_group_barrier  // want: MASK BARRIER
__threadfence __threadfence_block __threadfence_system mem_fence  // want: FENCE
write_mem_fence atomic_work_item_fence  // want: FENCE
atomicAdd atomicCAS atomicExch_block atomic_add atom_inc  // want: READS WRITES ATOMIC
atomic_fetch_add_explicit __hip_atomic_fetch_add unsafeAtomicAdd  // want: READS WRITES ATOMIC
async_work_group_copy __pipeline_memcpy_async  // want: MASK READS WRITES BARRIER
__ldcv  // want: READS VOLATILE
printf  // want: OUTPUT
assert __trap __assertfail  // want: STOPS
malloc free  // want: ALLOCATES
enqueue_kernel cudaLaunchDevice  // want: LAUNCHES
curand curand_uniform hiprand_init  // want: READS WRITES RANDOM
reduce_rows __my_intrinsic cub::BlockReduce get_lane make_it so  // want: THREAD SHAPE MASK TIME MACHINE READS WRITES ATOMIC ASSIGNS VOLATILE BARRIER FENCE OUTPUT STOPS ALLOCATES LAUNCHES RANDOM UNKNOWN
