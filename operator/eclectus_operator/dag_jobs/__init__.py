"""DagJobs: their tasks and pods, what is created next, the status, and the control loop."""
