// Values that belong to one thread, one moment or one place: no kernel that uses them is shared out anew.
// read: refusal

// case: a call of OpenCL
// with: around = '''
// with: __kernel void k(__global const float *x, __global float *out, int rows, int d) {
// with: const int i = get_global_id(0);
// with: if (i < rows * d) out[i] = x[i] * VALUE; }'''
// with: launch = { grid = ["ceildiv(rows * d, 64)"], block = ["64"] }
// each line
get_sub_group_local_id()  // want: not read: line 3: get_sub_group_local_id is called, which says which thread asks, other than by threadIdx and blockIdx
get_sub_group_id()  // want: not read: line 3: get_sub_group_id is called, which says which thread asks, other than by threadIdx and blockIdx
get_local_linear_id()  // want: not read: line 3: get_local_linear_id is called, which says which thread asks, other than by threadIdx and blockIdx
get_global_linear_id()  // want: not read: line 3: get_global_linear_id is called, which says which thread asks, other than by threadIdx and blockIdx
get_global_id(d)  // want: not read: line 3: get_global_id is called, which says which thread asks, other than by threadIdx and blockIdx
get_local_size(d)  // want: not read: line 3: get_local_size is called, which says how the launch is shaped, other than by blockDim and gridDim
get_sub_group_size()  // want: not read: line 3: get_sub_group_size is called, which says how the launch is shaped, other than by blockDim and gridDim
sub_group_any(1)  // want: not read: threads cooperate other than by totals over a row's elements: line 3: a branch depends on the thread and on a size at once
sub_group_reduce_add(1)  // want: not read: threads cooperate other than by totals over a row's elements: line 3: a branch depends on the thread and on a size at once
work_group_all(1)  // want: not read: threads cooperate other than by totals over a row's elements: line 3: a branch depends on the thread and on a size at once
work_group_broadcast(1, 0)  // want: not read: threads cooperate other than by totals over a row's elements: line 3: a branch depends on the thread and on a size at once
get_work_dim()  // want: not read: line 3: get_work_dim is called, which says how the launch is shaped, other than by blockDim and gridDim
