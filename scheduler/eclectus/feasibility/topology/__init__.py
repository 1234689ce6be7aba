"""Rules by which pods elsewhere decide about a node: topology spread and inter-pod affinity."""
