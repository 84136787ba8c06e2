"""Paths that may be passed to Spark."""

import pytest

from app.engines.remote.spark import SparkSession


@pytest.mark.parametrize("name", ["/lake", "/lake/visits", "/lake/2026/a.parquet", "/lake/y=26"])
def test_a_path_under_a_root_is_read(name: str) -> None:
    assert SparkSession(None, ("/lake/",), 0.0)._named(name) is not None


@pytest.mark.parametrize(
    "name",
    [
        *("/lake/", "/lakes/x", "/etc/passwd", "/lake/../etc", "/lake/./x", "/lake//x"),
        *("/lake/x/", "/lake/*", "/lake/{..,x}/y", "/lake/[a-z]", "/lake/x?", "/lake/%2e%2e/y"),
        *("/lake/a\\b", "/lake/a,/etc/b", "/lake/a`b", "file:/lake/x", ""),
    ],
)
def test_any_other_path_or_pattern_is_refused(name: str) -> None:
    assert SparkSession(None, ("/lake",), 0.0)._named(name) is None
