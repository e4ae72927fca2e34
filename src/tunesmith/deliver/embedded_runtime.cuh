// The kernel of that symbol in machine code that is part of the program; null where it cannot be loaded.
inline const void* embedded_kernel(const void* image, const char* symbol) {
    cudaLibrary_t library = nullptr;
    cudaKernel_t kernel = nullptr;
    if (cudaLibraryLoadData(&library, image, nullptr, nullptr, 0, nullptr, nullptr, 0) != cudaSuccess ||
        cudaLibraryGetKernel(&kernel, library, symbol) != cudaSuccess) {
        cudaGetLastError();  // it is not the caller's
        return nullptr;
    }
    return reinterpret_cast<const void*>(kernel);
}
