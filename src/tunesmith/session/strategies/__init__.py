"""The strategies of a run, and who plays its roles."""
