"""The filters, one per file, with the names and the words of kube-scheduler's plugins; table.py lists them."""
