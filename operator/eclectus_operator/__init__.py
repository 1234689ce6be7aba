"""The job manager: pods of DagJobs and probes, from creation to clean-up."""
