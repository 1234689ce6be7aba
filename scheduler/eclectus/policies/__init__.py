"""One readable file per published idea, and the table of names."""
