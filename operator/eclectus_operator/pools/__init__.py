"""Pools: what is wrong with their tree, and the loop that says so in their condition Ready."""
