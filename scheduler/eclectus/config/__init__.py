"""SchedulerConfiguration files: read, validated field by field, turned into policies and settings."""

from eclectus.config.configuration import Configuration, load, parse
from eclectus.config.effective import effective

__all__ = ["Configuration", "effective", "load", "parse"]
