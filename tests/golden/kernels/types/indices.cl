// Indices of OpenCL are wide.
// with: before = ""
// with: body = "__kernel void k(__global int *p) { return VALUE; }"

// case: an index
// each line
get_local_id(0)  // want: size_t
get_global_size(1)  // want: size_t
