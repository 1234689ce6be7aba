"""Volumes that claims can get where: which PersistentVolumes match, and where new ones can be provisioned."""
