"""The built-in roles: what Tunesmith knows about kernels without asking any model."""
