"""The part of C and C++ that kernels are written in: a small tree, from text and back to text."""
