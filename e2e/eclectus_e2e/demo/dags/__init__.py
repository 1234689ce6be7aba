"""The experiment on DAG jobs: the same jobs under Carbyne, other orders and kube-scheduler."""
