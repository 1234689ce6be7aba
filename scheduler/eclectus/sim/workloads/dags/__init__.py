"""Jobs that are graphs of stages, from files of several formats."""
