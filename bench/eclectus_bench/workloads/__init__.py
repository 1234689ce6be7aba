"""Workloads of users, by what their pods ask for: Eclectus beside kube-scheduler on one control plane.

`table.py` has a row for each; `make bench BENCH='--only workloads'` runs them.
"""
