"""Experiments: workers and deadlines, inputs and oracle, timing, verification."""
