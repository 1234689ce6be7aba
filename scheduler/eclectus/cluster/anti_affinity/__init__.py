"""Terms of pods that keep other pods away or attract them, and which pods these are."""
