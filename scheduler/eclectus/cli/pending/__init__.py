"""`eclectus pending`: the pods that wait for an Eclectus scheduler, or for one that nobody runs."""

from eclectus.cli.pending.command import pending

__all__ = ["pending"]
