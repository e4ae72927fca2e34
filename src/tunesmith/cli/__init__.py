"""The command line: options, commands, and what people see of them."""
