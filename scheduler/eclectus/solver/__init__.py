"""Solves flow problems in a process of its own: `python -m eclectus.solver`, asked and answered by pipes.

A solver of cost scaling holds Python's lock for as long as it runs, so within the scheduler's process a large
problem would delay watches and the Lease. Nothing else imports OR-Tools, which the extra `flow` installs.
Where it is missing, eclectus.maths solves problems of some thousand arcs.
"""
