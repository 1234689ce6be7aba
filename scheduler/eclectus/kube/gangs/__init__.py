"""PodGroups of Kubernetes and of the coscheduling plug-in, as gangs of the model."""
