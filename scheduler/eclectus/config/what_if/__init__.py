"""Questions as users write them: what would be other than it is, and which policy decides."""
