"""Pure functions on arrays: estimators, queueing formulas, shares. Each names its formula and source."""
