"""The volumes of pods: what their claims mean for placement, and what is done to the claims before a bind."""
