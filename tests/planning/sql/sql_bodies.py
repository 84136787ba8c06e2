"""SQL and the JSON body that it becomes."""

from typing import Any

from app.planning.sql.translate import translate

PRIVACY = {"epsilon": 1}
ADULT = {"column": "age", "op": ">=", "value": 18}


def query_of(sql: str) -> dict[str, Any]:
    query: dict[str, Any] = translate({"sql": sql}).body["query"]
    return query


def where_of(condition: str) -> Any:
    return query_of(f"SELECT COUNT(*) FROM people WHERE {condition}")["where"]
