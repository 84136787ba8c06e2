"""Appending an epoch, and reading the count of a stream."""

import httpx

from tests.server import Json, World, made, post_ask, some_rows


def append(world: World, dataset: str, rows: int = 10) -> Json:
    path = world.write_csv(some_rows(rows))
    return made(world.admin.patch(f"/v1/datasets/{dataset}", json={"append": {"path": path}}))


def latest_count(client: httpx.Client, stream: str) -> Json:
    return made(post_ask(client, stream, {}))
