"""What a kernel computes, apart from how its threads share the work."""
