"""Language models behind one protocol: hosted ones, a mailbox of files, and recordings of either."""
