void launch(float* out, float* x, int grid, int block, int rows, long long twice, float alpha) {
    mine::scale<float, 3><<<grid, block>>>(out, x, alpha, rows, twice);
}
extern "C" int printf(const char*, ...);
static int taken;
static float* take(float* at) { return ++taken, at; }
static cudaStream_t next_stream() { return ++taken, nullptr; }
#define NEXT_STREAM next_stream()
void once(float* out, float* x, int rows, int d) {
    mine::scale<float, 3><<<dim3(rows), 64 /* threads */, 0, NEXT_STREAM>>>(take(out), take(x),
        2.0f, rows, (taken++, 2 * d)  // of each
    );
}
