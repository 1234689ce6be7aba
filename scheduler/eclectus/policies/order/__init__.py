"""Order policies: which pending task is next."""
