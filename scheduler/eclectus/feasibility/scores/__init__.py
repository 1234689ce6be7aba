"""Scores of kube-scheduler's plugins as pure functions over arrays of nodes, 0..100, whole numbers as there.

One plugin a file. Where a plugin normalises, what it divides by is an argument: it is found among the nodes
that the pod fits on, and the same for all of them.
"""
