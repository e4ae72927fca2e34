"""Measurements that stand behind what the documents claim; nothing of the program imports them."""
