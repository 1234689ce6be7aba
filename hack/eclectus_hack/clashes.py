"""The table of clashes with the names of the policies, for the chart and the reference."""

from typing import Any

from eclectus.config.described import Statement, statement
from eclectus.policies.table import CLASHES, ROLES, Clash

CLASHING_ROLES = ("order", "place", "line", "relieve", "hold")
PROFILE_ROLES = (*CLASHING_ROLES, "speculate")


def named(clash: Clash) -> dict[str, dict[str, Statement]]:
    """Role -> the policies that the clash means, and with which settings; a role left out: any policy."""
    holds = {role: getattr(clash, role) for role in CLASHING_ROLES}
    return {role: _policies(role, each) for role, each in holds.items() if each is not None}


def for_chart() -> list[dict[str, Any]]:
    """All clashes as templates/_check.tpl reads them."""
    return [
        {
            "at": clash.at,
            "problem": clash.problem,
            "policies": {
                role: {name: _plain(said) for name, said in known.items()}
                for role, known in named(clash).items()
            },
        }
        for clash in CLASHES
    ]


def _policies(role: str, holds: Any) -> dict[str, Statement]:
    found = {name: statement(kind, holds) for name, kind in ROLES[role].items()}
    return {name: said for name, said in found.items() if said.by_default or said.otherwise}


def _plain(said: Statement) -> dict[str, Any]:
    return {"unless" if said.by_default else "with": said.otherwise} if said.otherwise else {}
