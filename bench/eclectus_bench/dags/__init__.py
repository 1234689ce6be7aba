"""DagJobs of Eclectus beside Argo Workflows, on the same graphs."""
