"""PersistentVolumeClaims, PersistentVolumes, StorageClasses and CSINodes of the API, and in the model."""
