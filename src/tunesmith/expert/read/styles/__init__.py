"""Ways in which kernels are written, one file each."""
