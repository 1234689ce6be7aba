"""The control loop: reads the cluster, carries out the steps that `decide` names."""
