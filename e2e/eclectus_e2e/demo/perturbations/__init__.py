"""The demo's second act: what happens to the learner when the cluster changes under it."""
