"""The filters, with kube-scheduler's plugin names and words; table.py lists them."""
