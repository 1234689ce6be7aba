"""Learn policies that are no family of their own."""
