"""What would be different: explanations of a state that was changed, and answers of other policies."""
