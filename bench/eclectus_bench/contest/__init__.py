"""`make bench BENCH="--only tenants"`: three tenants under Eclectus, Kueue and kube-scheduler alone."""
