"""The demo on real kubelets: probes learn quotas that nobody tells, real work follows; twice."""
