"""How fast Eclectus is, side by side with kube-scheduler on one control plane.

Run `python -m eclectus_bench --help`. Nothing here is part of the product.
"""
