"""Scripts, styles and pictures of the pages. The address holds a hash, so a browser may keep them.

`vendor.json` lists the packages that are not ours, with version, licence and the hash of each file.
"""

import hashlib
from functools import cache
from importlib.resources import files
from pathlib import PurePosixPath

from starlette.requests import Request
from starlette.responses import Response

HASH_LENGTH = 12
TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
FOREVER = "public, max-age=31536000, immutable"


@cache
def contents() -> dict[str, bytes]:
    """Every file by name. They are small, and there are few."""
    folder = files("app.web") / "static"
    return {
        item.name: item.read_bytes()
        for item in folder.iterdir()
        if PurePosixPath(item.name).suffix in TYPES
    }


@cache
def address(name: str) -> str:
    """The address of a file: `/static/<hash>/<name>`."""
    return f"/static/{_hash(name)}/{name}"


def _hash(name: str) -> str:
    return hashlib.sha256(contents()[name]).hexdigest()[:HASH_LENGTH]


async def serve(request: Request) -> Response:
    """A file, if the address has its present hash."""
    name = request.path_params["name"]
    content = contents().get(name)
    if content is None or request.path_params["hash"] != _hash(name):
        return Response("There is no such file.", status_code=404, media_type="text/plain")
    media_type = TYPES[PurePosixPath(name).suffix]
    return Response(content, media_type=media_type, headers={"cache-control": FOREVER})
