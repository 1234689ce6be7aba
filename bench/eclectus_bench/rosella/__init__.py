"""`make rosella`: what Rosella's paper claims, measured in the simulator, as docs/results/rosella.md."""
