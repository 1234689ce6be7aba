"""Which stage of a DAG job goes first, where several are ready: ranks of the stages, least first.

Each rule is a function of the remaining stages and the job's share, amounts by resource; `table.py` names
them. It raises ValueError for numbers that are negative or not finite. A stage of which nothing waits has a
rank too.
"""
