"""Measures the speed of Eclectus: a decision, a simulated task, and both schedulers on one control plane.

Run `python -m eclectus_bench --help`. Nothing here is part of the product.
"""
