"""Hold policies: whether a task waits for a node with its data."""
