"""What a user asks for, carried out on this machine: runs, retuning, profiles, comparisons."""
