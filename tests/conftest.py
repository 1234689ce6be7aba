"""What tests of all folders use."""

import pytest

from checkout import Checkout


@pytest.fixture
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A copy of the repository in a folder with a short name: a Unix socket's path has at most 107 bytes."""
    return Checkout(tmp_path_factory.mktemp("c"))
