"""Pure decisions about DagJobs: their tasks, the next pods, estimates and the status."""
