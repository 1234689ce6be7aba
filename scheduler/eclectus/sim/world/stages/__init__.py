"""Jobs that are graphs of stages: pods, estimates and failures, and what is recorded of them."""
