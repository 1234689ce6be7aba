"""The control loop: reads the cluster, and carries out the steps that `decide` returns."""
