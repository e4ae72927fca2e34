"""CUDA on one GPU: each part runs alone and writes JSON, `render` makes docs/results.md of it all."""
