"""Pure decisions: observed objects in; next steps, outcomes and status out."""
