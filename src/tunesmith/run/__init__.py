"""A run: its events, the state folded from them, the loop, and what it leaves on disk."""
