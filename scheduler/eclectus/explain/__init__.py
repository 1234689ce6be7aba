"""Why a pod waits or where it has gone, what a node holds, and what would be different.

`Engine.read` asks these questions between two steps. They read the engine's state and change nothing.
"""
