"""The scheduler process on a real cluster: watches, engine loop, writes, leader election, metrics."""
