"""Delay scheduling: how many nodes to pass over for a share of tasks that start where their data are.

Zaharia and others, "Delay Scheduling: A Simple Technique for Achieving Locality and Fairness in Cluster
Scheduling", EuroSys 2010, with the factor of the job's tasks that copies of the formula often lack.
"""

from math import log


def skips_for(locality: float, tasks: int, nodes: int, copies: int) -> float:
    """How many nodes to pass over so that at least this share of a job's tasks starts where its data are.

    `locality`: above 0 and below 1. `copies`: how many of the nodes have the data of a task.
    """
    missed = (1.0 - locality) * tasks
    return -nodes / copies * log(missed / (1.0 + missed))
