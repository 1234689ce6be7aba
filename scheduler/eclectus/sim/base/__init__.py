"""Types and tools that all layers of the simulator use."""
