"""Problem and template files: text in, checked values out, every fault with its line."""
