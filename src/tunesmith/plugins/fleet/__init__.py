"""Many problems on many devices under one budget of device hours: planned once, made of ordinary runs."""
