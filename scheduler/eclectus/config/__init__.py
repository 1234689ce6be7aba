"""SchedulerConfiguration files: read, validated field by field, turned into policies and settings."""

from eclectus.config.configuration import Configuration, effective, load, parse

__all__ = ["Configuration", "effective", "load", "parse"]
