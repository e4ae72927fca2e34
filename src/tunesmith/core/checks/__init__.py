"""What makes a kernel right: the cases it is tried on, their inputs, and the verdict on its outputs."""
