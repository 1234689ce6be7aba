"""Tools for contributors: derived files, images, permissions, sizes. Run `python -m eclectus_hack --help`."""
