"""The nodes of a cluster as arrays, and what is held on them, updated by deltas."""
