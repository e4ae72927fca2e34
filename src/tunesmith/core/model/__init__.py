"""A model of what was measured: configurations as numbers, and a Gaussian process over them."""
