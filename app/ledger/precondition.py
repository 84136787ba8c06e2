"""Version of an account that a change requires, if the caller names one (RFC 9110, 13.1)."""

from dataclasses import dataclass

from app.errors import PreconditionFailed


@dataclass(frozen=True, slots=True)
class Versions:
    """A set of versions, or any existing version."""

    numbers: frozenset[int] = frozenset()
    any_version: bool = False

    def has(self, version: int | None) -> bool:
        """True if `version` matches. None is an account that does not exist and never matches."""
        return version is not None and (self.any_version or version in self.numbers)


@dataclass(frozen=True, slots=True)
class Precondition:
    """The account must have a version in `match`, and none in `none_match`; None: no condition."""

    match: Versions | None = None
    none_match: Versions | None = None

    def must_hold(self, version: int | None) -> None:
        if self.match is not None and not self.match.has(version):
            if version is None:
                raise PreconditionFailed("There is no such budget yet; leave If-Match out.")
            raise PreconditionFailed("The budget has changed since you read it; read it again.")
        if self.none_match is not None and self.none_match.has(version):
            raise PreconditionFailed(
                "If-None-Match excludes the budget's version; leave it out to change the budget."
            )


MUST_BE_NEW = Precondition(none_match=Versions(any_version=True))
