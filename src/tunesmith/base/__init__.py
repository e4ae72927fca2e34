"""What every part of the program stands on: how plugins are found."""
