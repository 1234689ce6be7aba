"""SchedulerConfiguration files: read, validated field by field, turned into policies and settings."""
