"""Services and controllers of the API as selectors of pods in the model."""
