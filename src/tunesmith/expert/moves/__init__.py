"""Moves: each makes one way of sharing or doing the work a parameter, where it is safe."""
