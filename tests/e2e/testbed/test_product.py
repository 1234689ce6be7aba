"""A scheduler that cannot start is an error with the end of its log."""

from pathlib import Path

import pytest

from eclectus_e2e.errors import StartError
from eclectus_e2e.testbed import product
from eclectus_e2e.testbed.chart import Installed
from eclectus_e2e.testbed.processes import recorded
from eclectus_e2e.testbed.product import Product


def test_a_scheduler_that_ends_while_starting_is_an_error_with_the_end_of_its_log(tmp_path: Path) -> None:
    configuration = "{apiVersion: eclectus.dev/v1alpha1, kind: SchedulerConfiguration, profiles: 7}"
    kubeconfig = tmp_path / "none"
    kubeconfig.touch()
    installed = Installed("n", "a", configuration)
    refused = Product(kubeconfig, tmp_path, installed, kubeconfig, "http://127.0.0.1:1", token_seconds=600)
    with pytest.raises(StartError, match=r"(?s)eclectus ended while starting.*profiles"):
        product.start_scheduler(refused, dies_with_caller=True)
    assert recorded(tmp_path) == []
