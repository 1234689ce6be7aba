"""`images`: build image archives without Docker, and say where they lie and how big they are."""

import argparse

from eclectus_e2e.paths import CHECKOUT
from eclectus_e2e.testbed.images.archives import archive, references


def images(arguments: list[str]) -> int:
    """Build archives that `ctr -n k8s.io images import FILE` reads; unchanged ones stay as they are."""
    parser = argparse.ArgumentParser("eclectus_e2e images", description=images.__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"all when none: {', '.join(references())}")
    for name in parser.parse_args(arguments).names or references():
        path = archive(name)
        megabytes = path.stat().st_size / 1e6
        print(f"{path.relative_to(CHECKOUT)!s:<28}{megabytes:6.0f} MB  {references()[name]}", flush=True)
    return 0
