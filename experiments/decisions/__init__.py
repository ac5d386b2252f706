"""Real decisions: people, controllers and classic data sets, beside existing tools on the same splits."""
