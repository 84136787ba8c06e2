"""The same question as Python, R, curl and SQL. Every text asks exactly the body on the page."""

import json
import shlex
from collections.abc import Callable
from typing import Any

from typing_extensions import override

Json = dict[str, Any]
URL = "$BURSAR_URL"
AGGREGATES = {"count": "COUNT(*)", "sum": "SUM", "mean": "AVG", "variance": "VAR_POP"}
OPERATORS = {"==": "=", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
# Parameters that the client's methods take by position.
POSITIONAL = {"column", "q", "trim", "k", "edges", "outcome", "features", "point", "blocks"}
INFIX = {"==": "==", "!=": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}


def as_code(body: Json) -> dict[str, str]:
    """Code by language; SQL only for questions that have that form."""
    languages: dict[str, Callable[[Json], str | None]] = {
        "Python": python,
        "R": r,
        "curl": curl,
        "SQL": sql,
        "JSON": lambda whole: json.dumps(whole, indent=2, ensure_ascii=False),
    }
    codes = {name: _code_or_none(write, body) for name, write in languages.items()}
    return {name: text for name, text in codes.items() if text is not None}


def _code_or_none(write: Callable[[Json], str | None], body: Json) -> str | None:
    """None for a body of a shape that no question has; the interface refuses it in words."""
    try:
        return write(body)
    except (AttributeError, LookupError, TypeError, ValueError, RecursionError):
        return None


def curl(body: Json) -> str:
    sent = shlex.quote(json.dumps(body, ensure_ascii=False))
    return (
        f'curl -s {URL}/v1/queries -H "Authorization: Bearer $BURSAR_KEY" \\\n'
        f"  -H 'Idempotency-Key: '$(uuidgen) \\\n  -d {sent}"
    )


# Python


def python(body: Json) -> str:
    lines = ["import bursar", "from bursar import col", "", "b = bursar.connect()"]
    if "sql" in body:
        return "\n".join([*lines, f"b.sql({body['sql']!r}){_ask(body)}"])
    table = f"b[{body['dataset']!r}]"
    query = dict(body["query"])
    where, groups = query.pop("where", None), query.pop("group_by", None)
    if where is not None:
        table += f".where({_condition(where)})"
    call = f".{query.pop('kind')}({_arguments(query)})"
    if groups:
        call += f".by({', '.join(map(_group, groups))})"
    return "\n".join([*lines, f"answer = {table}{call}{_ask(body)}", "answer"])


def _ask(body: Json) -> str:
    privacy = dict(body["privacy"])
    if "half_width" in privacy:
        privacy = {"within": privacy.pop("half_width"), **privacy}
    words = [f"{name}={_amount(value)}" for name, value in privacy.items()]
    mechanism = body.get("mechanism")
    if mechanism and set(mechanism) == {"kind"}:
        words.append(f"mechanism={mechanism['kind']!r}")
    elif mechanism:
        words.append(f"mechanism={mechanism!r}")
    return f".ask({', '.join(words)})"


def _amount(value: Any) -> str:
    """An amount as a number, if that is exactly the text, and otherwise as text."""
    if isinstance(value, str) and value in (_as_float(value), _as_float(value)[:-2]):
        return value
    return repr(value)


def _as_float(text: str) -> str:
    try:
        return repr(float(text))
    except ValueError:
        return ""


def _arguments(query: Json) -> str:
    named = {name: value for name, value in query.items() if value is not None}
    if "numerator" in named:  # a ratio names its parts in its own way
        parts = [_part(named.pop(side)) for side in ("numerator", "denominator") if side in named]
        return ", ".join(parts)
    if "of" in named:
        listed = named.pop("of")
        return ", ".join(
            repr((one["kind"], one["column"])) if "column" in one else repr(one["kind"])
            for one in listed
        )
    if "predicates" in named:
        inner = ", ".join(f"{p['name']!r}: {_condition(p['where'])}" for p in named["predicates"])
        named["predicates"] = _Raw(f"{{{inner}}}")
    return ", ".join(
        repr(value) if name in POSITIONAL else f"{name}={value!r}" for name, value in named.items()
    ).replace("predicates=", "")


class _Raw(str):
    """Text that is code already."""

    @override
    def __repr__(self) -> str:
        return str(self)


def _part(side: Json) -> str:
    if side.get("column") is not None:
        return repr(side["column"])
    return _condition(side["where"])


def _column(name: str) -> str:
    return f"col.{name}" if name.isidentifier() else f"col[{name!r}]"


def _group(group: Any) -> str:
    if isinstance(group, str):
        return repr(group)
    if "edges" in group:
        return f"{_column(group['column'])}.edges({group['edges']!r})"
    return f"{_column(group['column'])}.private_keys()"


def _condition(where: Json) -> str:
    for word, joint in (("all", " & "), ("any", " | ")):
        if word in where:
            return joint.join(f"({_condition(part)})" for part in where[word])
    if "not" in where:
        return f"~({_condition(where['not'])})"
    column, operator, value = _column(where["column"]), where["op"], where.get("value", [])
    if operator == "in":
        return f"{column}.isin({value!r})"
    if operator == "between":
        return f"{column}.between({value[0]!r}, {value[1]!r})"
    if operator == "is_null":
        return f"{column}.is_null()"
    return f"{column} {INFIX[operator]} {value!r}"


# R


def r(body: Json) -> str:
    """The functions of `docs/recipes/bursar.R`, which take an epsilon; others as a whole body."""
    lines = 'source("bursar.R")\n\n'
    if set(body["privacy"]) != {"epsilon"} or "mechanism" in body:
        key = "list(`Idempotency-Key` = bursar_key())"
        return f'{lines}bursar_request("/v1/queries",\n  {_r(body)},\n  {key})'
    price = f"epsilon = {_amount(body['privacy']['epsilon'])}"
    if "sql" in body:
        return f"{lines}bursar_sql({_r(body['sql'])}, {price})"
    query = _r(body["query"])
    return f"{lines}bursar_ask({_r(body['dataset'])},\n  {query},\n  {price})"


def _r(value: Any) -> str:
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if value is None:
        return "NULL"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list):
        return f"list({', '.join(map(_r, value))})"
    return f"list({', '.join(f'{_r_name(name)} = {_r(one)}' for name, one in value.items())})"


def _r_name(name: str) -> str:
    return name if name.isidentifier() and name not in ("in", "all") else f"`{name}`"


# SQL


def sql(body: Json) -> str | None:
    """The question as a SELECT; None if it has no such form."""
    if "sql" in body:
        return str(body["sql"])
    query = dict(body["query"])
    kind, column = query.pop("kind"), query.pop("column", None)
    where, groups = query.pop("where", None), query.pop("group_by", None) or []
    plain = kind in AGGREGATES and not any(value is not None for value in query.values())
    if not plain or not all(isinstance(group, str) for group in groups):
        return None
    figure = AGGREGATES[kind] if kind == "count" else f"{AGGREGATES[kind]}({_name(column)})"
    names = [_name(group) for group in groups]
    text = f"SELECT {', '.join([*names, figure])}\nFROM {_name(body['dataset'])}"
    if where is not None:
        text += f"\nWHERE {_sql_condition(where)}"
    return text + (f"\nGROUP BY {', '.join(names)}" if names else "")


def _name(name: str) -> str:
    plain = name.isidentifier() and name.isascii() and name.islower()
    return name if plain else '"' + name.replace('"', '""') + '"'


def _sql_condition(where: Json) -> str:
    for word, joint in (("all", " AND "), ("any", " OR ")):
        if word in where:
            return joint.join(f"({_sql_condition(part)})" for part in where[word])
    if "not" in where:
        return f"NOT ({_sql_condition(where['not'])})"
    column, operator, value = _name(where["column"]), where["op"], where.get("value", [])
    if operator == "in":
        return f"{column} IN ({', '.join(map(_literal, value))})"
    if operator == "between":
        return f"{column} BETWEEN {_literal(value[0])} AND {_literal(value[1])}"
    if operator == "is_null":
        return f"{column} IS NULL"
    return f"{column} {OPERATORS[operator]} {_literal(value)}"


def _literal(value: Any) -> str:
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return repr(value)
