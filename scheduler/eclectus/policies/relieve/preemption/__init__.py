"""Preemption: `policy` decides, `candidates` remembers what each node would cost, `victims` finds it out."""

from eclectus.policies.relieve.preemption.policy import Preemption

__all__ = ["Preemption"]
