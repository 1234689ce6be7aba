"""The JSON schema of a SchedulerConfiguration, from the settings classes with which the scheduler reads it.

Policies are distinguished by `if` and `then` on their name, so that a validator's message names the wrong
field and not every policy to which it might have belonged.
"""

from dataclasses import MISSING, Field, fields, is_dataclass
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

from eclectus.api.names import API_VERSION, SCHEDULER_CONFIGURATION
from eclectus.config.described import default_of, written
from eclectus.config.process_settings import ProcessSettings
from eclectus.config.settings_reading import camel, settings_of
from eclectus.framework import ProfileSettings
from eclectus.model.settings import Setting
from eclectus.policies.table import ROLES
from eclectus_hack.clashes import PROFILE_ROLES

Schema = dict[str, Any]

DURATION = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"
SCHEDULER_NAME = r"^[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?$"
# What __post_init__ methods check of a single field.
_PATTERNS = {
    "loadSignal.url": "^(https?://.*)?$",
    "metrics.nodeGroupLabel": ".",
    "tracing.endpoint": "^(https?://[^/@]+(/.*)?)?$",
    "tenancy.sharedWorkloads": "^[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$",
}
_MAPPING = ["object", "null"]  # an empty mapping may be left empty


def configuration_schema() -> Schema:
    """The schema of the whole file; its `$ref`s point to `policy_definitions`."""
    return _closed(
        {
            "apiVersion": {"const": API_VERSION},
            "kind": {"const": SCHEDULER_CONFIGURATION},
            "profiles": {
                "description": "one entry for each schedulerName that pods may ask for",
                "type": "array",
                "minItems": 1,
                "items": _profile(),
            },
            "learn": {"$ref": "#/definitions/learn"},
            "seed": {"description": "seed of all random choices. Default: 0", "type": "integer"},
            **_properties(ProcessSettings, ""),
        },
        required=["profiles"],
    )


def policy_definitions() -> dict[str, Schema]:
    """A schema for each role, which chooses by the policy's name, and one for each policy with settings."""
    found = {}
    for role, policies in ROLES.items():
        with_settings = [name for name, kind in policies.items() if settings_of(kind)]
        found[role] = _role(role, list(policies), with_settings)
        for name in with_settings:
            found[f"{role}-{name}"] = _policy(policies[name])
    return found


def duration_bounds() -> dict[str, Any]:
    """Least and most seconds of each duration, in the form of the file; of policies below role and name."""
    process = {
        camel(name): _durations(hint)
        for _, (name, hint, _) in settings_of(ProcessSettings).items()
        if _durations(hint)
    }
    policies = {
        role: {name: _durations(kind) for name, kind in known.items() if _durations(kind)}
        for role, known in ROLES.items()
    }
    of_policies = {role: found for role, found in policies.items() if found}
    return {"process": process, "profile": _durations(ProfileSettings), "policies": of_policies}


def _profile() -> Schema:
    name = {
        "description": "the value of spec.schedulerName in pods",
        "type": "string",
        "pattern": SCHEDULER_NAME,
    }
    roles: dict[str, Schema] = {role: {"$ref": f"#/definitions/{role}"} for role in PROFILE_ROLES}
    each = {"anyOf": [roles["relieve"], {"enum": list(ROLES["relieve"])}]}
    roles["relieve"] = {"anyOf": [roles["relieve"], {"type": "array", "minItems": 1, "items": each}]}
    return _closed(
        {"schedulerName": name, **roles, **_properties(ProfileSettings, "")}, required=["schedulerName"]
    )


def _role(role: str, policies: list[str], with_settings: list[str]) -> Schema:
    without = [name for name in policies if name not in with_settings]
    bare = {"description": "no settings", "additionalProperties": False, "properties": {"policy": True}}
    return {
        "type": _MAPPING,
        "required": ["policy"],
        "properties": {"policy": {"description": "`eclectus policies` explains each", "enum": policies}},
        "allOf": [
            *(
                {"if": _named(name), "then": {"$ref": f"#/definitions/{role}-{name}"}}
                for name in with_settings
            ),
            *([{"if": _named(*without), "then": bare}] if without else []),
        ],
    }


def _named(*policies: str) -> Schema:
    name = {"const": policies[0]} if len(policies) == 1 else {"enum": list(policies)}
    return {"type": "object", "required": ["policy"], "properties": {"policy": name}}


def _policy(kind: type[Any]) -> Schema:
    schema = _closed({"policy": True, **_properties(kind, "")})
    implications = [
        {
            "if": {"required": [key], "properties": {key: {"const": value}}},
            "then": {"properties": {camel(other): {"const": must} for other, must in implied.items()}},
        }
        for key, (_, _, setting) in settings_of(kind).items()
        if setting
        for value, implied in setting.implies.items()
    ]
    return {"description": _first_line(kind), **schema, **({"allOf": implications} if implications else {})}


def _closed(properties: dict[str, Any], required: list[str] | None = None, nullable: bool = False) -> Schema:
    return {
        "type": _MAPPING if nullable else "object",
        "additionalProperties": False,
        **({"required": required} if required else {}),
        "properties": properties,
    }


def _properties(kind: type[Any], path: str) -> dict[str, Schema]:
    known = {each.name: each for each in fields(kind)}
    return {
        key: _property(hint, setting, known[name], path + key)
        for key, (name, hint, setting) in settings_of(kind).items()
    }


def _property(hint: Any, setting: Setting | None, field: Field[Any], path: str) -> Schema:
    if isinstance(hint, type) and is_dataclass(hint):
        return {"description": _first_line(hint), **_closed(_properties(hint, f"{path}."), nullable=True)}
    described = {"description": _described(setting, field)} if setting else {}
    value = _value(hint, setting)
    if _default_of(field):
        value = _not_empty(value)
    if path in _PATTERNS:
        value.get("items", value)["pattern"] = _PATTERNS[path]
    return {**described, **value}


def _value(hint: Any, setting: Setting | None) -> Schema:
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        (part,) = (each for each in parts if each is not type(None))
        return _or_null(_value(part, setting))
    if origin is Literal:
        return {"enum": list(parts)}
    if origin is dict:
        return {"type": _MAPPING, "additionalProperties": _value(parts[1], setting)}
    if origin is tuple:
        return {"type": ["array", "null"], "items": _value(parts[0], setting)}
    if is_dataclass(hint):
        return _closed(_properties(hint, ""), required=_required(hint))  # type: ignore[arg-type]
    return _scalar(hint, setting)


def _scalar(hint: Any, setting: Setting | None) -> Schema:
    if hint in (int, float):
        return _number(hint, setting)
    return {"type": {bool: "boolean", str: "string"}[hint]}


def _required(kind: type[Any]) -> list[str]:
    return [camel(each.name) for each in fields(kind) if _has_no_default(each)]


def _has_no_default(field: Field[Any]) -> bool:
    return field.default is field.default_factory is MISSING


def _number(hint: Any, setting: Setting | None) -> Schema:
    bounds = {} if setting is None else {"minimum": setting.least, "maximum": setting.most}
    found = {name: _whole(bound) for name, bound in bounds.items() if bound is not None}
    if setting is not None and setting.unit == "s":
        return {"type": ["number", "string"], **found, "pattern": DURATION}
    return {"type": "integer" if hint is int else "number", **found}


def _default_of(field: Field[Any]) -> Any:
    made = field.default_factory
    return (None if field.default is MISSING else field.default) if made is MISSING else made()


def _not_empty(schema: Schema) -> Schema:
    """Of a list or a mapping that is not empty by default: it may be left out, but not empty."""
    least = {"array": "minItems", "object": "minProperties"}
    kind = schema.get("type", "")
    if not isinstance(kind, list) or kind[0] not in least:
        return schema
    return {**schema, "type": kind[0], least[kind[0]]: 1}


def _or_null(schema: Schema) -> Schema:
    if "enum" in schema:
        return {"enum": [*schema["enum"], None]}
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    return {**schema, "type": [*kinds, "null"]}


def _described(setting: Setting, field: Field[Any]) -> str:
    """The meaning, the unit, the default and its reason, in one line."""
    if _has_no_default(field):
        return f"{setting.means}{_unit(setting)}"
    return _description(setting, default_of(field))


def _unit(setting: Setting) -> str:
    return f" [{setting.unit}]" if setting.unit else ""


def _description(setting: Setting, default: object) -> str:
    unit = _unit(setting)
    if default is None:
        return f"{setting.means}{unit}. {setting.why[:1].upper()}{setting.why[1:]}"
    spelled = str(default).lower() if isinstance(default, bool) else f"{_whole(default)}"
    if isinstance(default, tuple) or (isinstance(default, dict) and default):
        spelled = written(default, setting) if default else ""
    reason = f" ({setting.why})" if setting.why else ""
    return f"{setting.means}{unit}. Default: {spelled or 'empty'}{reason}"


def _first_line(documented: Any) -> str:
    return str(documented.__doc__).strip().splitlines()[0]


def _whole(value: Any) -> Any:
    """A float without a fraction as an integer, so that 4.0 is written as 4."""
    return int(value) if isinstance(value, float) and value == int(value) else value


def _durations(kind: type[Any]) -> dict[str, dict[str, Any]]:
    return {
        key: {
            name: _whole(bound)
            for name, bound in (("least", setting.least), ("most", setting.most))
            if bound is not None
        }
        for key, (_, _, setting) in settings_of(kind).items()
        if setting and setting.unit == "s"
    }
