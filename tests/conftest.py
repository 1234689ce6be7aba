"""What tests of all folders use."""

import pytest
from hypothesis import HealthCheck, settings

from checkout import Checkout

# How long it takes to draw inputs depends on what else the machine does, not on the code under test.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")


@pytest.fixture
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A copy of the repository in a folder with a short name: a Unix socket's path has at most 107 bytes."""
    return Checkout(tmp_path_factory.mktemp("c"))
