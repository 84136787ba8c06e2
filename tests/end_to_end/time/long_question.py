"""A question that a fault point holds, and its price."""

from decimal import Decimal

from tests.server import count

PRICE = Decimal("0.25")
QUESTION = count("people", float(PRICE))
LATER = "respond-async"
HELD = "F6"  # the exact value is in memory, and the thread waits
HOUR = "3600"  # longer than any client here waits
