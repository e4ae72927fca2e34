extern "C" __global__ void sum(float* class_, const unsigned char* x, int* seen, long long* work, float by,
                               int rows, int d, int extra, int add MORE) {
    const int row = blockIdx.x;
    int total = 0;
    for (int i = 0; i < d; ++i) total += (x[(row * d + i) / 2] >> (4 * ((row * d + i) % 2))) & 15;
    class_[row] += by * total + extra + (work[row] - 7) + ADD;
#if ADD
    class_[row] += more[2 * row + 1] - 0.25f;
    more[2 * row + 1] = 0;
#endif
    seen[0] = rows;
    work[row] = 0;
}
