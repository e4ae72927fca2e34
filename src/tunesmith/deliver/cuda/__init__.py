"""Tuned CUDA kernels as source, with the host code that launches them."""
