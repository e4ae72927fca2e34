"""Results for the tools of others, one module for each."""
