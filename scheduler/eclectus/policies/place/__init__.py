"""Place policies: which node a task gets."""
