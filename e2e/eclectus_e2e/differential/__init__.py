"""Random clusters and pods put to kube-scheduler and to Eclectus; every answer is compared."""
