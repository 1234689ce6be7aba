"""The writes that an API server has answered, by what they are of, from its metrics."""

import re
from collections import Counter

_VERBS = ("POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION")
_LABEL = re.compile(r'(\w+)="([^"]*)"')


def writes(metrics: str) -> Counter[str]:
    """Writes by verb, resource and subresource, as `POST pods/binding`; those of Leases are left out.

    A dry run changes nothing, but the API server does all else for it: it counts, by itself.
    """
    found = Counter[str]()
    for line in metrics.splitlines():
        if not line.startswith("apiserver_request_total{"):
            continue
        labels = dict(_LABEL.findall(line))
        if labels["verb"] in _VERBS and labels["resource"] != "leases":
            what = "/".join(filter(None, (labels["resource"], labels["subresource"])))
            dry = " (dry run)" if labels.get("dry_run") else ""
            found[f"{labels['verb']} {what}{dry}"] += int(float(line.rpartition(" ")[2]))
    return found
