"""Real kubelets on one machine, without Docker: containers, CPU quotas and speeds that are real."""
