"""The stream experiments: the same pods to several schedulers, one scheduler at a time."""
