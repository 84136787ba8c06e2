"""The client's address is the right-most one that is no trusted proxy, for any header."""

from ipaddress import ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.api.http.connections.forwarded import HOPS_MAX, TrustedProxies, scheme_of

PROXIES = TrustedProxies((ip_network("10.0.0.0/24"), ip_network("fd00::1")))
PEER = "10.0.0.1"
CLIENT = "203.0.113.7"


def client_of(*values: str | bytes) -> str:
    headers = [value if isinstance(value, bytes) else value.encode() for value in values]
    return PROXIES.client_of(PEER, [(b"x-forwarded-for", value) for value in headers])


@pytest.mark.parametrize(
    ("values", "client"),
    [
        ([], PEER),
        ([""], PEER),
        ([CLIENT], CLIENT),
        ([f"  {CLIENT}\t"], CLIENT),
        ([f"198.51.100.1, {CLIENT}"], CLIENT),
        ([f"{CLIENT},10.0.0.9,10.0.0.8"], CLIENT),
        ([f"{CLIENT},10.0.0.9,fd00::1"], CLIENT),
        (["198.51.100.1", CLIENT], CLIENT),
        ([CLIENT, "10.0.0.9"], CLIENT),
        ([f"junk,{CLIENT}"], CLIENT),
        ([f"{CLIENT},junk"], PEER),
        ([f"{CLIENT},junk,10.0.0.9"], "10.0.0.9"),
        ([f"{CLIENT},,10.0.0.9"], "10.0.0.9"),
        (["10.0.0.8,10.0.0.9"], "10.0.0.8"),
        ([f"{CLIENT}:443"], CLIENT),
        ([f"::ffff:{CLIENT}"], CLIENT),
        (["[2001:db8::1]:443"], "2001:db8::1"),
        (["2001:0db8:0:0::0001"], "2001:db8::1"),
        (["2001:db8::1%eth0"], PEER),
        (["unknown"], PEER),
        (["_hidden"], PEER),
        (["for=203.0.113.7"], PEER),
        (["3405803783"], PEER),
        (["0203.0.113.7"], PEER),
        ([b"\xff\xfe"], PEER),
        (["1" * 100_000], PEER),
        ([f"{'1' * 100_000},{CLIENT}"], CLIENT),
        ([f"{CLIENT},{' ' * 100_000}"], PEER),
    ],
)
def test_the_right_most_untrusted_address_is_the_client(values: list[str], client: str) -> None:
    assert client_of(*values) == client


def test_a_way_of_too_many_proxies_ends_at_the_last_that_is_read() -> None:
    way = [CLIENT] + [f"10.0.0.{number}" for number in range(100, 100 + HOPS_MAX)]
    assert client_of(",".join(way[:1] + way[2:])) == CLIENT
    assert client_of(",".join(way)) == "10.0.0.100"


@given(st.lists(st.binary(max_size=80), max_size=40), st.ip_addresses())
def test_nothing_to_the_left_of_an_untrusted_address_matters(
    made_up: list[bytes], client: object
) -> None:
    """A client writes every byte but its own address, which the proxy appends."""
    text = str(client)
    address = ip_address(text)
    plain = str(getattr(address, "ipv4_mapped", None) or address)
    if PROXIES.include(plain) or "%" in text:
        return
    assert client_of(b",".join([*made_up, text.encode()])) == plain
    assert client_of(*made_up, text) == plain


@given(st.lists(st.binary(max_size=300), max_size=5))
def test_any_bytes_give_an_address_and_a_scheme(values: list[bytes]) -> None:
    assert str(ip_address(client_of(*values))) == client_of(*values)
    assert scheme_of([(b"x-forwarded-proto", value) for value in values]) in ("http", "https", None)


@pytest.mark.parametrize(
    ("values", "scheme"),
    [
        ([], None),
        (["https"], "https"),
        (["HTTPS "], "https"),
        (["https,http"], "http"),
        (["http", "https"], "https"),
        (["https", "ftp"], None),
        (["https" * 1000], None),
    ],
)
def test_the_scheme_is_what_the_nearest_proxy_says(values: list[str], scheme: str | None) -> None:
    assert scheme_of([(b"x-forwarded-proto", value.encode()) for value in values]) == scheme


@pytest.mark.parametrize(
    ("peer", "trusted"),
    [
        ("10.0.0.255", True),
        ("10.0.1.0", False),
        ("::ffff:10.0.0.1", True),
        ("fd00::1", True),
        ("fd00::1%eth0", True),
        ("fd00::2", False),
        ("", False),
        ("testclient", False),
    ],
)
def test_a_peer_is_trusted_by_its_address(peer: str, trusted: bool) -> None:
    assert PROXIES.include(peer) is trusted
    assert not TrustedProxies().include(peer)
