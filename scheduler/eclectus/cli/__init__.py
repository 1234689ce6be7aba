"""The program `eclectus`, which is also `kubectl eclectus`."""
