"""The values that all parts exchange: tasks, nodes, events, commands, settings and errors."""
