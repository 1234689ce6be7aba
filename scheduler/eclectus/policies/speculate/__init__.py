"""Speculate policies: which running tasks are late, so that copies of them are worth their room."""
