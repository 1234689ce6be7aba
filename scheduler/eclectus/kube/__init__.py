"""Kubernetes API objects: decoded, and translated to the engine's model. Pure: no I/O and no clock.

The live scheduler and the simulator share it.
"""
