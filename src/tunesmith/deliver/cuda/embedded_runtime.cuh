// Whether it lies in the code that a driver cannot load it; all else may pass.
inline bool is_final(cudaError_t error) {
    return error == cudaErrorNoKernelImageForDevice || error == cudaErrorInvalidKernelImage ||
           error == cudaErrorInvalidPtx || error == cudaErrorUnsupportedPtxVersion || error == cudaErrorSymbolNotFound;
}

// The kernel of that symbol: 1 where it is loaded, 0 where it may be later, -1 where it never will be. It may be
// loaded while a stream is captured: nothing is queued for it.
inline int load_kernel(Kernel& kernel, const void* image, const char* symbol) {
    cudaLibrary_t library = nullptr;
    cudaKernel_t found = nullptr;
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    const bool exchanged = cudaThreadExchangeStreamCaptureMode(&mode) == cudaSuccess;
    cudaError_t error = cudaLibraryLoadData(&library, image, nullptr, nullptr, 0, nullptr, nullptr, 0);
    if (error == cudaSuccess) {
        error = cudaLibraryGetKernel(&found, library, symbol);
        if (error != cudaSuccess) cudaLibraryUnload(library);
    }
    if (exchanged) cudaThreadExchangeStreamCaptureMode(&mode);
    if (error != cudaSuccess) cudaGetLastError();  // it is not the caller's
    kernel.handle = reinterpret_cast<const void*>(found);
    return error == cudaSuccess ? 1 : is_final(error) ? -1 : 0;
}
