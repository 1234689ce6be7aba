"""The client of the API server: HTTP, credentials, errors, back-off, leader election, health server."""
