"""Reads CUDA, HIP and OpenCL C sources into plain values, and drafts problems from them."""
