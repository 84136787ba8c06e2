"""The only module that speaks HTTP: it performs the steps of a flow with httpx."""

import asyncio
import json
import ssl
from collections.abc import Callable
from time import sleep
from typing import Any, TypeVar

import httpx

from bursar.errors import BadQuestion, NoLogin, TlsFailed, Unreachable
from bursar.http.flow import Call, Flow, Pause, Progress, Reply, Step

T = TypeVar("T")
Show = Callable[[Progress], None]
TIMEOUT = httpx.Timeout(120.0, connect=10.0)


def _options(url: str, key: str, verify: Any) -> dict[str, Any]:
    if isinstance(verify, str):
        try:
            verify = ssl.create_default_context(cafile=verify)
        except (OSError, ValueError):
            hint = "Name a PEM file with the certificate of your authority."
            raise TlsFailed(f"{verify} cannot be read.", hint=hint) from None
    try:
        httpx.URL(url)
    except httpx.InvalidURL:
        raise NoLogin(f"{url} is not an address.", hint="Write http://... or https://...") from None
    headers = {"authorization": f"Bearer {key}", "user-agent": "bursar-python"}
    return {"base_url": url, "headers": headers, "timeout": TIMEOUT, "verify": verify}


def _request(call: Call) -> dict[str, Any]:
    parameters = {name: value for name, value in call.parameters.items() if value is not None}
    request: dict[str, Any] = {"headers": dict(call.headers), "params": parameters}
    if call.body is not None:
        try:
            text = json.dumps(call.body, ensure_ascii=False, allow_nan=False)
            request["content"] = text.encode()
        except (TypeError, ValueError, RecursionError):
            raise BadQuestion(
                "The question holds a value that JSON has not.",
                hint="Use finite numbers, texts, True, False, None, lists and dictionaries.",
            ) from None
        request["headers"]["content-type"] = "application/json"
    return request


def _unreachable(url: str, error: httpx.HTTPError) -> Unreachable:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return TlsFailed(
                f"The certificate of {url} was not accepted.",
                hint="Check the address, or name your authority: connect(verify='ca.pem')",
            )
        if isinstance(cause, ssl.SSLError):
            return TlsFailed(
                f"{url} does not speak TLS, or another version of it.",
                hint=f"Without TLS the address is {url.replace('https:', 'http:', 1)}",
            )
        cause = cause.__cause__ or cause.__context__
    if isinstance(error, httpx.TimeoutException):
        return Unreachable(f"{url} did not answer in time.", hint="The server may be overloaded.")
    return Unreachable(f"{url} cannot be reached.", hint="Is the server running?")


def _reply(response: httpx.Response) -> Reply:
    headers = {name.lower(): value for name, value in response.headers.items()}
    return Reply(response.status_code, headers, response.content)


class Transport:
    """Performs flows one after the other, and waits for each."""

    def __init__(self, url: str, key: str, verify: Any, show: Show) -> None:
        self.url = url
        self._http = httpx.Client(**_options(url, key, verify))
        self._show = show

    def run(self, flow: Flow[T]) -> T:
        """Perform a flow. An interruption reaches the flow, which may cancel what it began."""
        step, answer, failure = None, None, None
        while True:
            try:
                step = flow.throw(failure) if failure is not None else flow.send(answer)
            except StopIteration as end:
                result: T = end.value
                return result
            answer, failure = None, None
            try:
                answer = self._perform(step)
            except (Unreachable, KeyboardInterrupt) as error:
                failure = error

    def _perform(self, step: Step) -> Reply | None:
        match step:
            case Call():
                try:
                    return _reply(self._http.request(step.method, step.path, **_request(step)))
                except httpx.HTTPError as error:
                    raise _unreachable(self.url, error) from None
            case Pause():
                sleep(step.seconds)
            case Progress():
                self._show(step)
        return None

    def close(self) -> None:
        self._http.close()


class AsyncTransport:
    """Performs flows in an event loop."""

    def __init__(self, url: str, key: str, verify: Any, show: Show) -> None:
        self.url = url
        self._http = httpx.AsyncClient(**_options(url, key, verify))
        self._show = show

    async def run(self, flow: Flow[T]) -> T:
        """Perform a flow. A cancellation reaches the flow, which may cancel what it began."""
        step, answer, failure = None, None, None
        while True:
            try:
                step = flow.throw(failure) if failure is not None else flow.send(answer)
            except StopIteration as end:
                result: T = end.value
                return result
            answer, failure = None, None
            try:
                answer = await self._perform(step)
            except (Unreachable, KeyboardInterrupt, asyncio.CancelledError) as error:
                failure = error

    async def _perform(self, step: Step) -> Reply | None:
        match step:
            case Call():
                try:
                    sent = await self._http.request(step.method, step.path, **_request(step))
                except httpx.HTTPError as error:
                    raise _unreachable(self.url, error) from None
                return _reply(sent)
            case Pause():
                await asyncio.sleep(step.seconds)
            case Progress():
                self._show(step)
        return None

    async def close(self) -> None:
        await self._http.aclose()
