"""A discrete-event simulator that drives the scheduling engine of the live scheduler.

The engine receives events and returns commands, as it does on a cluster. The true speed of a machine and the
true size of a task exist only here; the import contract forbids the engine to import this package.

Layers, each importing only those before it: base, world, workloads, scenario, run; report stands beside run.
"""
