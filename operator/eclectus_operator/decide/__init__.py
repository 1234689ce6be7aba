"""Pure decisions: observed state in, next steps and status out."""
