__kernel void doubled(__global float *out, __global const float *x, __global float *w, int n)
{
    __local float t[128];
    int i = get_global_id(0), l = get_local_id(0);
    float v = i < n ? x[i] : 0.0f;
    BODY
    if (i < n)
        out[i] = v + v;
}
