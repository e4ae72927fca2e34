"""Workers on other hosts."""
