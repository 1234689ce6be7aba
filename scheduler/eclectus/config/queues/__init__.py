"""Queues of Kueue, YuniKorn and Volcano as Pools, with a list of what has no counterpart."""
