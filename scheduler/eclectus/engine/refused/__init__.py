"""What is done for refused tasks, for which no node has room: pods are evicted, or a node is kept free."""
