"""The rest of the history: repeats, refusals, failures, long questions, streams and changes."""

import asyncio
from typing import Any

from tests.golden import queries
from tests.golden.cards import CARDS, csv_of
from tests.golden.served.history import History
from tests.golden.served.reach import Trouble
from tests.golden.served.script import BOTH, COUNT, ONE

Json = dict[str, Any]
DATA = "people_approximate"
ADULTS: Json = {"kind": "count", "where": queries.ADULT}


async def repeat(history: History) -> None:
    """Repeat with the same key and with others, and send another body with the same key."""
    for name in ("first", "again"):
        await history.ask(f"same key, {name}", DATA, ADULTS, ONE, key="one")
    await history.ask("another key", DATA, ADULTS, ONE)
    await history.ask("fresh", DATA, ADULTS, ONE, fresh=True)
    await history.ask("another body", DATA, COUNT, ONE, key="one")
    await history.ask("asynchronous", DATA, ADULTS, ONE, headers={"Prefer": "respond-async"})
    narrow = {"kind": "propose_test_release", "bound": 1}
    await history.ask("withheld", DATA, queries.RANKS["median"], BOTH, mechanism=narrow)


async def refuse(history: History) -> None:
    """Every problem that a caller can cause."""
    await history.ask("too dear", "people_pure", COUNT, ONE, who="bob")
    await history.ask("no grant", "people_gdp", COUNT, ONE, who="eve")
    await history.ask("a viewer asks", DATA, COUNT, ONE, who="vera")
    await history.step("no key", "GET /v1/budgets", who=None)
    await history.step("not JSON", "POST /v1/queries", "{", who="ann")
    await history.step("a key twice", "POST /v1/queries", '{"sql":"","sql":""}', who="ann")
    wrong: dict[str, Json] = {
        "column": {"query": {"kind": "mean", "column": "incme"}},
        "category": {"query": {"kind": "count", "where": {**queries.BERN, "value": "bern"}}},
        "kind": {"query": {"kind": "cuont"}},
        "two prices": {"privacy": {"epsilon": 1, "rho": 1}},
        "epsilon": {"privacy": {"epsilon": -1}},
        "delta": {"privacy": {"epsilon": 1, "delta": 2}},
        "mechanism": {"mechanism": {"kind": "exponential"}},
        "noise": {"mechanism": {"kind": "noisy_max"}},
        "surprise": {"surprise": 1},
        "half width": {"query": queries.SUMS["mean"], "privacy": {"half_width": 3}},
        "edges": {"query": {"kind": "histogram", "column": "age", "edges": [3, 2]}},
        "text": {"query": {"kind": "histogram", "column": "note"}},
        "order": {"query": {"kind": "median", "column": "city"}},
        "triangles": {"query": {"kind": "triangles"}},
        "reports": {"query": queries.REPORTED["reports of city"]},
    }
    for name, change in wrong.items():
        body = {"dataset": DATA, "query": COUNT, "privacy": ONE, **change}
        await history.step(f"wrong {name}", "POST /v1/queries", body, who="ann")
    await history.step("wrong parameter", "GET /v1/queries?limt=3", who="ann")
    await history.step("not there", "GET /v1/queries/q_0", who="ann")
    await history.step("a name that is taken", "POST /v1/analysts", {"name": "Ann"})
    budget = f"/v1/datasets/{DATA}/budgets/ann"
    grant = {"currency": "approximate", "epsilon": 900, "delta": "0.01"}
    unseen = {"If-Match": '"unseen"'}
    await history.step("not what was seen", f"PUT {budget}", grant, headers=unseen)


async def trouble(history: History) -> None:
    """Missing data, an engine that fails, and a question cancelled while it reads."""
    for kind in ("gone", "failed"):
        query = {"kind": "count", "where": {"column": "age", "op": ">", "value": len(kind)}}
        with Trouble.of(kind):
            await history.ask(f"data {kind}", DATA, query, ONE)
        await history.ask(f"data {kind}, again", DATA, query, ONE, key=f"data-{kind}")
    query = {"kind": "count", "where": {"column": "age", "op": ">", "value": 77}}
    with Trouble.of("held"):
        held = await history.ask("held", DATA, query, ONE, headers={"Prefer": "respond-async"})
        number = held.json()["id"]
        await history.step("look while held", f"GET /v1/queries/{number}", who="ann")
        await history.step("cancel", f"DELETE /v1/queries/{number}", who="ann")
    await history.step("cancelled", f"GET /v1/queries/{number}", who="ann")
    await history.step("cancel again", f"DELETE /v1/queries/{number}", who="ann")
    await asyncio.sleep(0.05)  # for the thread that was held


async def streams(history: History) -> None:
    above = {"kind": "above_threshold", "threshold": 90, "crossings": 2, "asks_max": 5}
    body = {"dataset": DATA, "stream": above, "privacy": ONE}
    await history.step("preview a stream", "POST /v1/streams/preview", body, who="ann")
    stream = (await history.json("open a stream", "POST /v1/streams", body, who="ann"))["id"]
    for age in (80, 10, 60, 5, 1):
        where = {"column": "age", "op": ">=", "value": age}
        ask = {"query": {"kind": "count", "where": where}}
        await history.step(f"ask from {age}", f"POST /v1/streams/{stream}/ask", ask, who="ann")
    await history.step("look at a stream", f"GET /v1/streams/{stream}", who="ann")
    running = {"kind": "running_count", "epochs_max": 6, "where": queries.ADULT}
    for name, privacy in (("epsilon", ONE), ("rho", {"rho": "0.1", "delta": "1e-6"})):
        body = {"dataset": "by_arrival", "stream": running, "privacy": privacy}
        opened = await history.json(f"running by {name}", "POST /v1/streams", body, who="ann")
        history.keys[f"running {name}"] = opened["id"]
        path = f"POST /v1/streams/{opened['id']}/ask"
        await history.step(f"ask epoch 1 by {name}", path, {}, who="ann")
    for epoch in (2, 3):
        (history.data / f"{epoch}.csv").write_text(csv_of("by_arrival", epoch=epoch))
        change = {"append": {"path": f"{epoch}.csv"}}
        await history.json(f"append epoch {epoch}", "PATCH /v1/datasets/by_arrival", change)
        for name in ("epsilon", "rho"):
            path = f"POST /v1/streams/{history.keys[f'running {name}']}/ask"
            await history.step(f"ask epoch {epoch} by {name}", path, {}, who="ann")
    third = {"kind": "count", "where": {"column": "arrival", "op": "==", "value": 3}}
    await history.ask("of the third epoch", "by_arrival", third, ONE)
    path = f"DELETE /v1/streams/{history.keys['running rho']}"
    await history.step("close a stream", path, who="ann")
    await history.step("list streams", "GET /v1/streams", who="ann")


async def change(history: History) -> None:
    """Changes by administrators, and the final state."""
    events = [
        {"mechanism": "gaussian", "noise_multiplier": 20, "count": 4, "delta": "1e-7"},
        {"mechanism": "laplace", "epsilon": "0.1"},
        {"mechanism": "generic", "epsilon": "0.2", "delta": "1e-8"},
        {"mechanism": "randomized_response", "epsilon": 1, "categories": 3},
        {"mechanism": "zcdp", "rho": "0.01", "delta": "1e-7"},
        {"mechanism": "leaky_input", "delta": "1e-9"},
    ]
    for name in ("people_approximate", "people_renyi", "by_city"):
        body = {"events": events, "holder": "ann", "reason": "elsewhere"}
        await history.step(f"book on {name}", f"POST /v1/datasets/{name}/losses", body)
    lower = {"currency": "pure", "epsilon": "0.1", "reason": "lowered"}
    await history.step("lower", "PUT /v1/datasets/people_pure/budgets/ann", lower)
    await history.ask("frozen", "people_pure", queries.SUMS["sum"], ONE)
    for name in ("people_pure", "people_approximate", "people_zcdp", "people_renyi", "people_gdp"):
        path = f"/v1/datasets/{name}/budgets/ann"
        await history.step(f"budget on {name}", f"GET {path}", who="ann")
        await history.step(f"trade-off on {name}", f"GET {path}/tradeoff?points=9", who="ann")
    for name in ("by_city", "by_age", "by_arrival", "by_ward"):
        await history.step(f"budget on {name}", f"GET /v1/datasets/{name}/budgets/ann", who="ann")
    carried = {"currency": "zcdp", "epsilon": 950, "delta": "0.02"}
    await history.step("carry over", "PUT /v1/datasets/fixed/budgets/ann", carried)
    composed = {"delta": 1e-6, "orders": [2, 16], "events": events[1:3]}
    await history.step("compose", "POST /v1/accounting/compose", composed, who="ann")
    await history.step("sample", "GET /v1/datasets/visits/sample?rows=2", who="ann")
    await history.step("card", "GET /v1/datasets/by_ward")
    close = {"status": "closed", "reason": "ended"}
    await history.step("close", "PATCH /v1/datasets/people_gdp", close)
    await history.ask("closed", "people_gdp", queries.SUMS["sum"], ONE)
    await history.step("withdraw", "DELETE /v1/datasets/people_zcdp?reason=wrong")
    (history.data / "visits.csv").write_text(csv_of("visits anew"))
    await history.ask("a changed file", "visits", COUNT, ONE)
    await history.step("refresh", "PATCH /v1/datasets/visits", {"refresh": True})
    await history.ask("a new version", "visits", COUNT, ONE)
    (history.data / "spare.csv").write_text(csv_of("spare"))
    spare = {"name": "spare", "source": {"path": "spare.csv"}, **CARDS["people"]}
    await history.json("register a spare", "POST /v1/datasets", spare)
    await history.step("withdraw a spare", "DELETE /v1/datasets/spare?reason=wrong")
    eve = await history.json("key to revoke", "POST /v1/analysts/eve/keys", {})
    await history.step("revoke", f"DELETE /v1/keys/{eve['id']}?reason=lost")
    await history.step("disable", "PATCH /v1/analysts/bob", {"enabled": False, "groups": []})
    await history.step("people", "GET /v1/analysts")
    await history.step("budgets", "GET /v1/budgets?limit=3", who="vera")
    await history.step("history", "GET /v1/queries?limit=5", who="ann")
    await history.step("withheld ones", "GET /v1/queries?status=withheld", who="ann")
    await history.step("verify", "GET /v1/ledger/verify")
    await history.step("health", "GET /healthz", who=None)
