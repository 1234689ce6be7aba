"""One Kubernetes Filter per file, and the table of all."""
