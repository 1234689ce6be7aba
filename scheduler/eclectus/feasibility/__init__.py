"""May this pod run there? One Kubernetes rule per file, answered for many nodes at once."""
