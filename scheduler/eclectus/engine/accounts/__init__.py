"""What is kept for policies that ask for it."""
