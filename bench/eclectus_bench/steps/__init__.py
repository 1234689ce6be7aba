"""The engines, nodes, pods and events of the cases in engine.py."""
