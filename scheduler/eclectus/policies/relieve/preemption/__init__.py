"""Preemption: `policy` decides, `candidates` remembers what each node would cost."""

from eclectus.policies.relieve.preemption.policy import Preemption

__all__ = ["Preemption"]
