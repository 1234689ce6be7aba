"""A world that knows the truth: machines, work and chance, in front of the engine of the live scheduler.

The engine sees events and answers with commands, as it does in a cluster. How fast a machine really is
and how long a task really runs stands here alone; the import contract forbids the core to look.
"""
