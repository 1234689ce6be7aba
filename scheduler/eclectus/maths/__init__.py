"""Formulas and statistics: queueing, sampling, failure detection. Each module names its formula and source.

The modules here hold pure functions on numbers and arrays (the random draws get their generator as an
argument). Estimators that keep samples or sums from call to call are classes in `estimators`. Nothing here
knows the cluster, the policies or Kubernetes.
"""
