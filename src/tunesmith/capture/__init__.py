"""Running programs: which kernels they launch, with what, how long these take, and what tuning could give."""
