"""From tokens to the tree of a C source."""
