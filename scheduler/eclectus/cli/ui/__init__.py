"""`eclectus ui`: a page about the cluster, served on this machine to who has started it."""
