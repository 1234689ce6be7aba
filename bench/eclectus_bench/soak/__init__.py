"""A soak: scheduler and operator of the chart on a large, busy cluster for minutes to hours.

Run `python -m eclectus_bench.soak --help`.
"""
