"""CUDA: builds by NVRTC or nvcc, for which no driver is needed, and launches through NVIDIA's driver."""
