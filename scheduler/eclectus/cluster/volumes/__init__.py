"""Storage of the cluster: what exists, who uses it on which rows, and what is decided but not yet seen."""
