"""Search for objects that cost a scheduler more than their number: every pair of kinds, by hill-climbing."""
