"""The Kubernetes objects that the operator reads and writes, and what is valid in a NodeProbe."""
