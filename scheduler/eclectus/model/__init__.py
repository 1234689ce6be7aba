"""The values that every part exchanges: tasks, nodes, events, commands, settings and errors."""
