"""What each rule costs the engine: a decision about a pod that has it, and a change that it takes notice of.

`table.py` has the rules; `make bench BENCH='--only rules'` measures them.
"""
