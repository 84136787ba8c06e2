"""Sign-in: an encrypted cookie that holds the key and its end, and the check of a form's origin.

The cookie is sealed under a key that only the servers have. It works for `HOURS` at most, and no
longer than the key itself: every page sends the key to the interface, which checks it again.

No server keeps a list of sign-ins. So signing out removes the cookie from the browser, and nothing
else: a copy made before works until its end. Revoking the key ends every copy at once.
"""

import json
import time
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response

from app.errors import SecretUnavailable
from app.ports.ledger import SecretBox

HOURS = 12
SEALED_LENGTH = 600  # characters of a sealed cookie: a key has up to 500
ABOUT = "page session"
# Base64 without the characters that a cookie must quote.
_TO_COOKIE, _FROM_COOKIE = str.maketrans("+/", "-_"), str.maketrans("-_", "+/")


@dataclass(frozen=True)
class Sessions:
    """Cookies of this server. `public_url` is the address that people type, if it is configured."""

    box: SecretBox
    public_url: str | None = None

    def name_for(self, request: Request) -> str:
        """A `__Host-` cookie cannot be set by another host of the same site."""
        return "__Host-bursar" if self._is_secure(request) else "bursar"

    def begin(self, request: Request, response: Response, key: str) -> None:
        """Set the cookie. Raises SecretUnavailable if this server has no key to seal it."""
        until = int(time.time()) + HOURS * 3600
        sealed = self.box.close(json.dumps({"key": key, "until": until}), ABOUT)
        sealed = sealed.translate(_TO_COOKIE).rstrip("=")
        response.set_cookie(
            self.name_for(request),
            sealed,
            max_age=HOURS * 3600,
            path="/",
            secure=self._is_secure(request),
            httponly=True,
            samesite="strict",
        )

    def end(self, request: Request, response: Response) -> None:
        """Remove the cookie from this browser."""
        response.delete_cookie(
            self.name_for(request),
            path="/",
            secure=self._is_secure(request),
            httponly=True,
            samesite="strict",
        )

    def key_of(self, request: Request) -> str | None:
        """The key in the cookie; None without a cookie that is valid now."""
        sealed = request.cookies.get(self.name_for(request))
        if sealed is None:
            return None
        sealed = sealed.translate(_FROM_COOKIE) + "=" * (-len(sealed) % 4)
        try:
            opened = json.loads(self.box.open(sealed, ABOUT))
        except (SecretUnavailable, ValueError):
            return None
        return str(opened["key"]) if opened["until"] > time.time() else None

    def is_own_form(self, request: Request) -> bool:
        """True if the form comes from one of our pages, by Origin, or else by Sec-Fetch-Site."""
        origin = request.headers.get("origin")
        if origin is None:
            return request.headers.get("sec-fetch-site") == "same-origin"
        return origin in self._own_origins(request)

    def _own_origins(self, request: Request) -> set[str]:
        if self.public_url is not None:
            address = urlsplit(self.public_url)
            return {f"{address.scheme}://{address.netloc}"}
        return {f"{request.scope['scheme']}://{request.headers.get('host', '')}"}

    def _is_secure(self, request: Request) -> bool:
        """True if the browser uses TLS: by the configured address, or else by a trusted proxy."""
        scheme = urlsplit(self.public_url).scheme if self.public_url else request.scope["scheme"]
        return str(scheme) == "https"
