"""What is counted of pods for policies that ask for it, and only then.

`accounts`: which are kept; how many tasks arrive, and the work of jobs that has not begun. `group_shares`:
what groups of tasks hold. `known_jobs`: DAG jobs and how far they are. `node_prices`: what constraints
demand, and how scarce nodes are by it.
"""
