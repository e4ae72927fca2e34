"""Values, rules and ports. Pure: no file, clock, environment or device is touched here."""
