"""Random clusters and pods from a seed, as objects of the API, with every rule that both schedulers have."""
