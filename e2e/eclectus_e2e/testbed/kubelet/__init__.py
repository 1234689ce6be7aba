"""A fake kubelet: one process that plays every node, each with a true speed that only it knows."""
