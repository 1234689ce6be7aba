"""The control loop of DagJobs: reads a job and its pods, and carries out what `decide` returns."""
