"""Storage objects of the API, and in the model."""
