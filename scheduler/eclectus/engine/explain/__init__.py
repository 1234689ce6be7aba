"""What the engine says of its decisions: why pods wait, and what a placement was chosen among."""
