"""What stands beside the core: found by name, entering by public faces."""
