"""Tools for contributors: images, manifests, the chart's values table, permissions, sizes."""
