"""The command `release`: what a version consists of, written to build/release and pushed to a registry."""
