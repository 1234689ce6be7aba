"""Kubernetes' own end-to-end specs against Eclectus."""
