"""What the spec of a pod becomes before rules read it: what its profile adds, which namespaces it means."""
