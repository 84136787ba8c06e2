"""A scrape, read by the parser of prometheus_client."""

from collections.abc import Iterator

import httpx
from prometheus_client.parser import text_string_to_metric_families

from tests.bursard import Server

TOKEN = "scrape-token-of-the-tests-" + "x" * 16
Sample = tuple[str, dict[str, str], float]


def scraped(client: httpx.Client) -> str:
    reply = client.get("/metrics")
    assert reply.status_code == 200, reply.text
    assert reply.headers["content-type"].startswith("text/plain; version=")
    return reply.text


def samples(text: str) -> Iterator[Sample]:
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            yield sample.name, sample.labels, sample.value


def value(text: str, name: str, **labels: str) -> float:
    """The one sample with this name and these labels."""
    (number,) = [each for found, its, each in samples(text) if found == name and its == labels]
    return number


def total(text: str, name: str, **labels: str) -> float:
    """Sum of the samples that have these labels, among others."""
    return sum(
        each
        for found, its, each in samples(text)
        if found == name and labels.items() <= its.items()
    )


def scrape(server: Server) -> str:
    """A scrape on a connection of its own, which any worker may take."""
    with httpx.Client(base_url=server.url, headers={"Authorization": f"Bearer {TOKEN}"}) as client:
        return scraped(client)
