"""Waiting for the binds of a comparison with kube-scheduler; test_quick.py makes one."""

import asyncio

import pytest

from eclectus_bench.load import Binds
from eclectus_e2e.errors import StartError


def test_a_scheduler_that_has_ended_is_not_waited_for():
    gone = 2**22 + 1  # beyond the kernel's largest pid
    with pytest.raises(StartError, match="ended with 0 of 3 pods bound"):
        asyncio.run(Binds().wait_for(3, gone, lambda text: None))
