"""What the policies of all roles have in common: a name for people."""

from __future__ import annotations

from typing import ClassVar


class Policy:
    """A policy of one role. As text it is its role and the name that a configuration gives it."""

    title: ClassVar[str]
    """`place/phoenix`, as the table of policies says; of a class that is in no table its own name."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.title = cls.__name__

    def __str__(self) -> str:
        return self.title
