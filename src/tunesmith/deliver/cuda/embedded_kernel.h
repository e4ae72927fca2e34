// A kernel of machine code or PTX that is part of the program.
struct EmbeddedKernel {
    Kernel kernel;
    std::atomic<int> state;  // 0: not loaded yet, 1: loaded, -1: it never will be
    std::mutex loading;
};

// It, loaded; null where it cannot be. That is tried again, unless it lies in the code itself.
template <class... Options>
inline Kernel* embedded_kernel(EmbeddedKernel& own, const void* image, const char* symbol, Options... options) {
    int state = own.state.load(std::memory_order_acquire);
    if (state == 0) {
        const std::lock_guard<std::mutex> alone(own.loading);
        state = own.state.load(std::memory_order_relaxed);
        if (state == 0) {
            state = load_kernel(own.kernel, image, symbol, options...);
            own.state.store(state, std::memory_order_release);
        }
    }
    return state > 0 ? &own.kernel : nullptr;
}
