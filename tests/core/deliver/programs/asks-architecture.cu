#if __CUDA_ARCH__ >= 900
#define expf(x) __expf(x)
#elif __CUDA_ARCH__ >= 800
#define expf(x) exp2f(x)
#endif
