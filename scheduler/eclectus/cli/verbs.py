"""Commands whose first word may be a verb: `eclectus pools import`, `eclectus dag suspend JOB`."""

from __future__ import annotations

from typing import Any, ClassVar

import click
from typing_extensions import override


class WithVerbs(click.Command):
    """A command whose first word may be one of its verbs, which are commands of their own.

    A group would need a verb always: `eclectus dag JOB` could not show a job.
    """

    verbs: ClassVar[dict[str, click.Command]]

    @override
    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        verb = self.verbs.get(args[0]) if args else None
        if verb is not None:
            return verb.make_context(f"{info_name} {args[0]}", args[1:], parent, **extra)
        return super().make_context(info_name, args, parent, **extra)

    @override
    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Verbs"):
            formatter.write_dl([(name, each.get_short_help_str()) for name, each in self.verbs.items()])

    @classmethod
    def complete(cls, _: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
        """The verbs that begin so."""
        return [verb for verb in cls.verbs if verb.startswith(incomplete)]
