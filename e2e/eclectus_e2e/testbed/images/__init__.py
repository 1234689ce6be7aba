"""Container images built without Docker: those of `e2e/images.yaml`, and pause and busybox for real nodes."""
