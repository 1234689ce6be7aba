"""`eclectus explain`: why a pod waits or where it has gone, and why a node gets no pods."""
