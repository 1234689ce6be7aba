"""Workloads: generators and trace readers, one format per file, and the table of all."""
