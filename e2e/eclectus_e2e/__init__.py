"""A real control plane on any machine, and a fake kubelet that plays nodes of different speed.

Run `python -m eclectus_e2e --help`. Nothing here is part of the product: the product packages
never import this one, so the true speeds of the nodes stay out of their reach.
"""
