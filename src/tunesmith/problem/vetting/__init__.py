"""Whether a text that somebody else wrote may be compiled at all."""
