"""`eclectus dag`: DAG jobs with their stages, what is planned for them, and why a stage waits."""

from eclectus.cli.dag.command import dag

__all__ = ["dag"]
