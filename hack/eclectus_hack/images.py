"""The command `images`: builds image archives without Docker."""

import argparse
import sys

from eclectus_e2e.paths import CHECKOUT
from eclectus_e2e.testbed.images.archives import archive, references


def images(arguments: list[str]) -> int:
    """Build image archives for `ctr -n k8s.io images import FILE`; unchanged ones are kept.

    Prints path, size and image reference of each. The first build of all takes about 5 minutes.
    """
    parser = argparse.ArgumentParser("eclectus_hack images", description=images.__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"default: all ({', '.join(references())})")
    names = parser.parse_args(arguments).names or references()
    print("building images: the first time about 5 minutes, unchanged ones seconds", file=sys.stderr)
    for name in names:
        path = archive(name)
        megabytes = path.stat().st_size / 1e6
        print(f"{path.relative_to(CHECKOUT)!s:<28}{megabytes:6.0f} MB  {references()[name]}", flush=True)
    return 0
