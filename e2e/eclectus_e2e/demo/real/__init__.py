"""The experiment on real kubelets: probes learn hidden CPU quotas, and real containers run; twice."""
