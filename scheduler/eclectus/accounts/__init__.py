"""What is counted of pods for policies that ask for it, and only then.

`accounts`: those that are kept, and what happens to a pod passed on to each. `group_shares`: what groups of
tasks hold. `job_work`: the work of jobs that has not begun. `arrivals`: how many tasks arrive. `known_jobs`:
DAG jobs and how far they are. `set_demand` and `node_prices`: what constraints demand, and how
scarce nodes are by it.
"""
