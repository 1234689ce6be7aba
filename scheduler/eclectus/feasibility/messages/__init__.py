"""What the rules refuse, counted and in words: for reports, and for explanations."""
