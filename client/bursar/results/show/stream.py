"""Streams and their answers as text and as HTML."""

from typing import TYPE_CHECKING

from bursar.results.show import html

if TYPE_CHECKING:
    from bursar.ask.streams import StreamRequest
    from bursar.results.streams import StreamAnswer, StreamPreview, StreamState


class Shown:
    """Shows its text in a notebook, with the first line as a title."""

    def _repr_html_(self) -> str:
        first, *others = repr(self).strip("<>").splitlines()
        return html.box(html.title(first), *map(html.quiet, others))


def request_text(request: "StreamRequest") -> str:
    """A stream that is not open yet."""
    return (
        f"<stream {_name(str(request.stream['kind']))} of {request.dataset}; nothing paid yet, "
        "use .preview() or .open()>"
    )


def preview_text(preview: "StreamPreview") -> str:
    fits = "" if preview.fits else ", but an account would refuse it"
    return f"opening the stream costs {preview.price}{fits}\n{_expected(preview.mechanism)}".strip()


def state_text(state: "StreamState") -> str:
    paid = "" if state.charged is None else f"; charged {state.charged}"
    return f"stream {_name(state.kind)} of {state.dataset}: {state.status}{_left(state)}{paid}"


def answer_text(answer: "StreamAnswer") -> str:
    """A value with its interval, or whether the threshold was reached."""
    if answer.above is not None:
        text = "at or above the threshold" if answer.above else "below the threshold"
    else:
        text = f"epoch {answer.epoch}: {html.cell(answer.value)}"
    if answer.interval is not None:
        low, high = html.cell(answer.interval.low), html.cell(answer.interval.high)
        text += f"  [{low} to {high}, {100 * answer.interval.confidence:g} % of the noise]"
    return text + _left(answer)


def _left(one: "StreamState | StreamAnswer") -> str:
    parts = []
    if one.asks_left is not None:
        parts.append(f"{one.asks_left:,} asks left")
    if one.crossings_left is not None:
        parts.append(f"{one.crossings_left:,} crossings left")
    return "".join(f"; {part}" for part in parts)


def _expected(mechanism: object) -> str:
    error = mechanism.get("expected_error") if isinstance(mechanism, dict) else None
    return str(error.get("text", "")) if isinstance(error, dict) else ""


def _name(kind: str) -> str:
    return kind.replace("_", " ")
