"""NodeProbes: when a probe runs and on which node, its pod, its steps, and the room that it yields."""
