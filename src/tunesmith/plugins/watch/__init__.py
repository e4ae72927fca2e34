"""Runs in a browser, live: one server on this machine's loopback, for who has its token."""
