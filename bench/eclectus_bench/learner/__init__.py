"""What the learner costs and gains, measured without a cluster."""
