"""List and watch: pods and nodes of the API server as events of the engine."""
