"""Search spaces: expressions, parameters, constraints, and the configurations they leave."""
