"""Explanations over HTTP: for whom, how many, and where the leader is that can give them."""
