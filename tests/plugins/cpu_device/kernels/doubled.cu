extern "C" __global__ void doubled(float *out, const float *x, float *w, int n)
{
    __shared__ float t[128];
    int i = blockIdx.x * blockDim.x + threadIdx.x, l = threadIdx.x;
    float v = i < n ? x[i] : 0.0f;
    BODY
    if (i < n)
        out[i] = v + v;
}
