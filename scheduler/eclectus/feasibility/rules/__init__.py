"""The filters, one per file, with kube-scheduler's plugin names and words; table.py lists them."""
