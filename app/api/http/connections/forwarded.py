"""The client's address and scheme behind a proxy, from X-Forwarded-For and X-Forwarded-Proto.

Anybody may send these headers. They count only on a connection from an address that the operator
has named. The right-most listed address that is no trusted proxy is the client's: the trusted proxy
next to it has seen it. Everything further left may be made up.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from itertools import islice

HOPS_MAX = 16  # a longer way has no end that anybody configured
ADDRESS_LENGTH_MAX = 60
_LINE_BYTES_MAX = 4096  # read from the right end of a header; longer than HOPS_MAX addresses
_FOR, _PROTO = b"x-forwarded-for", b"x-forwarded-proto"

Address = IPv4Address | IPv6Address
Headers = Iterable[tuple[bytes, bytes]]


@dataclass(frozen=True)
class TrustedProxies:
    """Addresses whose word about clients is taken."""

    networks: tuple[IPv4Network | IPv6Network, ...] = ()

    def include(self, peer: str) -> bool:
        """True if this is the address of a trusted proxy."""
        address = _parsed(peer.partition("%")[0]) if self.networks else None
        return address is not None and self._trust(address)

    def client_of(self, peer: str, headers: Headers) -> str:
        """The client's address, on a connection from the trusted proxy `peer`."""
        client = peer
        for hop in islice(_from_the_right(headers), HOPS_MAX):
            address = _parsed(hop)
            if address is None:  # made up, or by a proxy that writes something else
                break
            client = str(address)
            if not self._trust(address):
                break
        return client

    def _trust(self, address: Address) -> bool:
        return any(address in network for network in self.networks)


def scheme_of(headers: Headers) -> str | None:
    """`http` or `https`, as the trusted proxy next to us says; None if it does not say."""
    values = [value for name, value in headers if name == _PROTO]
    last = values[-1][-_LINE_BYTES_MAX:].rpartition(b",")[2].strip().lower() if values else b""
    return last.decode() if last in (b"http", b"https") else None


def _from_the_right(headers: Headers) -> Iterator[str]:
    """Listed addresses, the nearest first; several headers are one list."""
    for value in reversed([value for name, value in headers if name == _FOR]):
        for part in reversed(value[-_LINE_BYTES_MAX:].split(b",")):
            yield part.strip(b" \t")[: ADDRESS_LENGTH_MAX + 1].decode("latin-1")


@lru_cache(4096)
def _parsed(text: str) -> Address | None:
    """An address, also with a port. IPv4 in the form of IPv6 is IPv4."""
    if len(text) > ADDRESS_LENGTH_MAX or "%" in text:
        return None
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ip_address(text)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address
