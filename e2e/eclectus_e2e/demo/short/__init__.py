"""The short demo: Eclectus and kube-scheduler on one stream, in the middle of which speeds change."""
