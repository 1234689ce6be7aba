"""Which nodes can run a pod: Kubernetes' filters, evaluated for many nodes at once."""
