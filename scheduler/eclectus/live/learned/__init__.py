"""What the learner exchanges with the cluster: NodeProfiles, the load in NodeProbes, measured node load."""
