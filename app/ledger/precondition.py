"""Which version of an account a change is meant for, if the caller says so (RFC 9110, 13.1)."""

from dataclasses import dataclass

from app.errors import PreconditionFailed


@dataclass(frozen=True, slots=True)
class Versions:
    """Some versions, or whichever there is."""

    numbers: frozenset[int] = frozenset()
    whichever: bool = False

    def has(self, version: int | None) -> bool:
        """None is an account that does not exist: it has no version."""
        return version is not None and (self.whichever or version in self.numbers)


@dataclass(frozen=True, slots=True)
class Precondition:
    """The account must have one of these versions, and none of those; None demands nothing."""

    match: Versions | None = None
    none_match: Versions | None = None

    def must_hold(self, version: int | None) -> None:
        if self.match is not None and not self.match.has(version):
            if version is None:
                raise PreconditionFailed("There is no such budget yet; leave If-Match out.")
            raise PreconditionFailed("The budget is not the one you saw; read it again.")
        if self.none_match is not None and self.none_match.has(version):
            raise PreconditionFailed(
                "The budget is one that If-None-Match rules out; leave it out to change the budget."
            )


ANY_STATE = Precondition()
MUST_BE_NEW = Precondition(none_match=Versions(whichever=True))
