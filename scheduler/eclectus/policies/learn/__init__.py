"""Learn policies. Rosella's learner is in `policies/rosella/learn`, beside its placement."""
