"""A stranger's plugin: a backend, an export, a command and a check of `doctor`."""
