"""How noise is put on exact statistics: one file for each mechanism, and the registry of them."""

from app.mechanisms import laplace

MECHANISMS = {laplace.KIND: laplace.prepare}
