"""The Kubernetes objects that the operator reads and writes."""
