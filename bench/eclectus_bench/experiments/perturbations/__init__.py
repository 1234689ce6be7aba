"""The perturbation experiment: how the learner reacts when speeds change, and when a node freezes."""
