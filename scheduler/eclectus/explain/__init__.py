"""Why a pod waits or where it has gone, what a node holds, and what would be different.

Asked between two steps, beside the engine: it reads the engine's state and changes nothing.
"""
