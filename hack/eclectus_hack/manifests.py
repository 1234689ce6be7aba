"""The command `manifests`: writes the files that are derived from the chart and from `e2e/images.yaml`.

manifests/eclectus.yaml        the chart with its default values, for `kubectl apply` without helm
manifests/operator.yaml        the objects that `operator.enabled` adds
charts/eclectus/README.md      its table of values, between the two marker comments
charts/eclectus/values.schema.json, files/duration-bounds.yaml   what the scheduler's settings allow
charts/eclectus/files/clashes.yaml                  which combinations of policies it refuses
charts/eclectus/files/job-policies.yaml             which policies read DAG jobs
charts/eclectus/files/template-fields.yaml          what the operator allows in a pod template
scheduler/, operator/          their Dockerfiles, from e2e/images.yaml
docs/reference/                settings, metrics, custom resources and commands
"""

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path

import yaml

from eclectus_e2e.paths import CHART, CHECKOUT, MANIFESTS
from eclectus_e2e.testbed.chart import NAMESPACE, Object, render
from eclectus_hack import dockerfiles, reference, values_schema, values_table

HEADER = """\
# {what}. `make manifests` writes this file: change charts/eclectus.
#   kubectl apply --server-side -f manifests/{file}
"""
# In the order of `kubectl apply`: objects may need those before them.
KINDS = (
    "CustomResourceDefinition",
    "Namespace",
    "PriorityClass",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "ResourceQuota",
    "FlowSchema",
    "NetworkPolicy",
    "ServiceAccount",
    "ConfigMap",
    "ClusterRole",
    "ClusterRoleBinding",
    "Role",
    "RoleBinding",
    "Service",
    "PodDisruptionBudget",
    "Deployment",
)
# Only objects of a helm release have these.
HELM_LABELS = ("helm.sh/chart", "app.kubernetes.io/managed-by")
HELM_KEEP = "helm.sh/resource-policy"


class _Readable(yaml.SafeDumper):
    """Writes multi-line strings as block scalars, so that the configuration is readable."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Readable.add_representer(str, _text)


def manifests(arguments: list[str]) -> int:
    """Write the derived files."""
    argparse.ArgumentParser("eclectus_hack manifests", description=manifests.__doc__).parse_args(arguments)
    _write(parts_of_chart())  # before the chart is rendered with them
    _write(rendered())
    return 0


def _write(files: Mapping[Path, str]) -> None:
    for path, text in files.items():
        changed = not path.exists() or path.read_text() != text
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        print(f"{'written  ' if changed else 'unchanged'} {path.relative_to(CHECKOUT)}", file=sys.stderr)


def derived_files() -> Mapping[Path, str]:
    """The text of every derived file, by path."""
    return {**parts_of_chart(), **rendered()}


def parts_of_chart() -> Mapping[Path, str]:
    """Files of the chart that follow the scheduler's settings and the operator's rules."""
    schema = CHART / "values.schema.json"
    return {
        schema: values_schema.with_configuration(schema.read_text()),
        CHART / "files" / "duration-bounds.yaml": values_schema.duration_bounds_yaml(),
        CHART / "files" / "clashes.yaml": values_schema.clashes_yaml(),
        CHART / "files" / "job-policies.yaml": values_schema.job_policies_yaml(),
        CHART / "files" / "template-fields.yaml": values_schema.template_fields_yaml(),
    }


def rendered() -> Mapping[Path, str]:
    """Files that are rendered from the chart and from `e2e/images.yaml`."""
    readme = CHART / "README.md"
    return {
        MANIFESTS / "eclectus.yaml": eclectus_yaml(),
        MANIFESTS / "operator.yaml": operator_yaml(),
        **dockerfiles.dockerfiles(),
        **reference.pages(),
        readme: values_table.with_table(readme.read_text(), (CHART / "values.yaml").read_text()),
    }


def eclectus_yaml() -> str:
    """The chart's objects in the order of KINDS, without labels and annotations of helm."""
    header = HEADER.format(what="Eclectus with the chart's default values", file="eclectus.yaml")
    return header + _documents([namespace(), *render()])


def operator_yaml() -> str:
    """The objects that the operator adds."""
    header = HEADER.format(what="Eclectus' operator, in addition to eclectus.yaml", file="operator.yaml")
    present = {_identity(each) for each in render()}
    added = [each for each in render({"operator": {"enabled": True}}) if _identity(each) not in present]
    return header + _documents(added)


def _documents(objects: list[Object]) -> str:
    kept = [each for each in objects if not _is_hook(each)]
    kept.sort(key=lambda each: KINDS.index(each["kind"]))
    texts = [yaml.dump(_without_helm(each), Dumper=_Readable, sort_keys=False, width=110) for each in kept]
    return "".join(f"---\n{text}" for text in texts)


def _identity(one: Object) -> tuple[str, str, str]:
    return one["kind"], one["metadata"].get("namespace", ""), one["metadata"]["name"]


def namespace() -> Object:
    """The namespace, which enforces the Pod Security Standard `restricted`."""
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": labels}}


def _is_hook(one: Object) -> bool:
    return "helm.sh/hook" in one["metadata"].get("annotations", {})


def _without_helm(one: Object) -> Object:
    one["metadata"].get("annotations", {}).pop(HELM_KEEP, None)
    if one["metadata"].get("annotations") == {}:
        del one["metadata"]["annotations"]
    pod = one.get("spec", {}).get("template", {})
    for metadata in (one["metadata"], pod.get("metadata", {})):
        for label in HELM_LABELS:
            metadata.get("labels", {}).pop(label, None)
    return one
