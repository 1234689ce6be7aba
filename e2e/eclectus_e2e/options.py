"""What the commands check of their options alike."""

import argparse

from eclectus_e2e.errors import UsageError


def check_positive(options: argparse.Namespace, *names: str) -> None:
    """Raise UsageError for the first of these options that is given and not above 0."""
    for name in names:
        value = getattr(options, name)
        if value is not None and value <= 0:
            raise UsageError(f"--{name.replace('_', '-')} {value}: must be above 0")
