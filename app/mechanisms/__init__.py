"""How noise is put on exact statistics: one file for each mechanism, and the registry of them."""

from collections.abc import Callable

from app.mechanisms import gaussian, laplace
from app.mechanisms.asked import Asked
from app.mechanisms.release import Release
from app.queries.shape import Shape

Prepare = Callable[[Shape, Asked], Release]
MECHANISMS: dict[str, Prepare] = {laplace.KIND: laplace.prepare, gaussian.KIND: gaussian.prepare}
