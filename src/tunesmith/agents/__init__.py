"""The roles played by language models: what each is told, and how its reply is read."""
