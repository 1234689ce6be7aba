"""Container images built without Docker: what `e2e/images.yaml` lists, and the two that real nodes need."""
