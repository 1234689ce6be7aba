"""Values and tools that the whole simulator uses."""
