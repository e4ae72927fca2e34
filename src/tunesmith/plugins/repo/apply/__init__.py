"""What a run delivered, put back into the repository that its problem was taken from."""
