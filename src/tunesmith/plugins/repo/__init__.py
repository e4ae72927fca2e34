"""Kernels inside a program: captured, taken out, put back."""
