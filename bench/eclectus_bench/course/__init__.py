"""What `make bench` measures: its parts, how much of each, and the command line."""
