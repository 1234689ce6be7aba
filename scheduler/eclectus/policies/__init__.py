"""Scheduling policies: one published idea a module, and the table of the names that users write."""
