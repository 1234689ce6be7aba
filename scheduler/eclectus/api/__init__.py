"""The `eclectus.dev/v1alpha1` API: its names, and its custom resources as typed objects."""
