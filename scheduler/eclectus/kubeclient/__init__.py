"""The client of the API server: HTTP, watch lines, credentials, errors, leader election, health server."""
