"""Real kubelets and containers on one machine, without Docker; CPU quotas give the nodes different speeds."""
