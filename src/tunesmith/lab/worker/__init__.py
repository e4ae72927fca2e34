"""What runs kernels, inside the sandbox."""
