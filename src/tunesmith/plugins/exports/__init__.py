"""Exports: a run's result in the form in which somebody's program takes it. One module for each target."""
