"""Rewrites that bring a kernel into the form that the styles read."""
