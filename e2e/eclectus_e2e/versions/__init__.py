"""A smoke run on each supported minor version of Kubernetes."""
