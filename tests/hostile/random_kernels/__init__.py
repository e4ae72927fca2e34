"""Kernels generated from a grammar, changed by the expert and compared with themselves on the emulator."""
