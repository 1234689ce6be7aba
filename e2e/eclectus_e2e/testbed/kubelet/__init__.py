"""A fake kubelet: one process that simulates every node, each with a true speed that only it knows."""
