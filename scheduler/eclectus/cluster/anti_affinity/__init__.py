"""Required anti-affinity of pods on nodes, and which pods it keeps away."""
