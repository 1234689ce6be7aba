"""Formulas and estimators: queueing, sampling, failure detection. Each module names its formula and source.

Random draws get their generator as an argument. Nothing here knows the cluster, the policies or Kubernetes.
"""
