"""Several runs beside each other: comparisons, experiments, differences, calls timed."""
