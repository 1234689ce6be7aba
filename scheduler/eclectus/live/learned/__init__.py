"""What the learner exchanges with the cluster: NodeProfiles, NodeProbe load, measured node load."""
