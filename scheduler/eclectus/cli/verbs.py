"""Commands whose first word may be a verb: `eclectus pools import`, `eclectus dag suspend JOB`."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, ClassVar, cast

import click
from typing_extensions import override

from eclectus.model.printed import spelling


class WithVerbs(click.Command):
    """A command whose first word may be one of its verbs, which are commands of their own.

    A group would need a verb always: `eclectus dag JOB` could not show a job.
    """

    verbs: ClassVar[Mapping[str, str]]
    """Verb -> `module:function` below `eclectus.cli`, imported when the verb is used: a table needs none."""

    @override
    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        if args and args[0] in self.verbs:
            verb = self.verb(args[0])
            return verb.make_context(f"{info_name} {args[0]}", args[1:], parent, **extra)
        words = tuple(args)  # which the parser takes
        try:
            return super().make_context(info_name, args, parent, **extra)
        except click.NoSuchOption:
            raise
        except click.UsageError as error:
            # A verb with what follows it reads as a name with too many words behind it.
            hint = spelling(words[0], list(self.verbs)) if words else ""
            if not hint:
                raise
            raise click.UsageError(f"{error.message}; {hint}", error.ctx) from None

    @classmethod
    def verb(cls, name: str) -> click.Command:
        """The command of a verb."""
        module, _, function = cls.verbs[name].partition(":")
        return cast(click.Command, getattr(import_module(f"eclectus.cli.{module}"), function))

    @override
    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Verbs"):
            formatter.write_dl([(name, self.verb(name).get_short_help_str()) for name in self.verbs])

    @classmethod
    def complete(cls, _: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
        """The verbs that begin so."""
        return [verb for verb in cls.verbs if verb.startswith(incomplete)]
