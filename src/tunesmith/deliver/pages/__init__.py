"""Reports and pages."""
