"""Experiments of `demo` that are benchmarks: scarce nodes, unrelated machines, changes of speed."""
