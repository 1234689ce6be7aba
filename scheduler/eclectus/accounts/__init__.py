"""What is counted of pods for policies that ask for it, and only then.

`accounts`: which are kept; what groups hold, how many tasks arrive, and the work of jobs that has not begun.
`known_jobs`: DAG jobs and how far they are. `node_prices`: what constraints demand, and node prices by it.
"""
