"""What is right and what a time is worth: judged in our process."""
