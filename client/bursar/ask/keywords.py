"""The nearest name for a misspelt method or argument, in one line."""

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import ParamSpec, TypeVar

from bursar.ask.nearest import did_you_mean
from bursar.errors import NoSuchName

P = ParamSpec("P")
T = TypeVar("T")


def no_attribute(owner: str, name: str, known: Iterable[str]) -> AttributeError:
    """The error of a name that is not there. Names with an underscore get no suggestion."""
    if name.startswith("_"):
        return AttributeError(f"{owner} has no attribute '{name}'")
    near = did_you_mean(name, [one for one in known if not one.startswith("_")])
    return NoSuchName(f"{owner} has no '{name}'{near or '.'}")


def named_arguments(method: Callable[P, T]) -> Callable[P, T]:
    """The same method; a misspelt argument is answered with the nearest name."""
    known = [name for name in inspect.signature(method).parameters if name != "self"]

    @functools.wraps(method)
    def checked(*args: P.args, **kwargs: P.kwargs) -> T:
        for name in kwargs:
            if name not in known:
                near = did_you_mean(name, known) or f"; it takes {', '.join(known)}"
                raise TypeError(f"{method.__name__}() has no argument '{name}'{near}")
        return method(*args, **kwargs)

    return checked
