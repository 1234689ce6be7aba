"""Which nodes can run a pod: one Kubernetes filter per file, evaluated for many nodes at once."""
