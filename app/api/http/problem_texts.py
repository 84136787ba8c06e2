"""Every type of problem in words: what it means, and what to do.

This table is the source of the pages under `/problems` and of `docs/errors.md`.
"""

from typing import NamedTuple

from app import errors
from app.api.http.problems import STATUSES, TITLES, slug
from app.errors import AppError


class ProblemText(NamedTuple):
    meaning: str
    what_to_do: str


TEXTS: dict[type[AppError], ProblemText] = {
    errors.Malformed: ProblemText(
        "The body is not JSON in UTF-8, has a key twice, or has a number that is NaN or too large.",
        "Send valid JSON. Nothing was charged.",
    ),
    errors.NotAuthenticated: ProblemText(
        "There was no key, or it is unknown, expired or revoked.",
        "Send a valid key as `Authorization: Bearer <key>`. An administrator can issue a new one.",
    ),
    errors.NotPermitted: ProblemText(
        "The key is valid, but this needs another role.",
        "Use the key of a person with the role that `detail` names.",
    ),
    errors.NoGrant: ProblemText(
        "There is no such dataset, or there is no budget on it: none of yours, or none of `*`.",
        "Check the name of the dataset. Ask an administrator to grant a budget to you and to `*`.",
    ),
    errors.NotFound: ProblemText(
        "It does not exist, or it is not visible to you. Both look the same.",
        "Check the address and the names in it.",
    ),
    errors.PreconditionFailed: ProblemText(
        "The budget is not the one that you saw, so nothing was changed.",
        "Read the budget again, and send its new ETag.",
    ),
    errors.TooLarge: ProblemText(
        "The body has too many bytes or values, or the question asks for too many groups.",
        "Send less in one request. Nothing was charged.",
    ),
    errors.Invalid: ProblemText(
        "A field or a query parameter breaks a rule. `errors` lists each place with its rule.",
        "Correct these places. Nothing was charged.",
    ),
    errors.IdempotencyConflict: ProblemText(
        "This `Idempotency-Key` was used with another body.",
        "Send the first body again to get its reply, or take a new key for the new body.",
    ),
    errors.BudgetExhausted: ProblemText(
        "The question costs more than an account has left. Nothing was charged.",
        "Ask for at most `largest_epsilon`, or ask an administrator for a larger budget.",
    ),
    errors.AccountFrozen: ProblemText(
        "The limit of an account is below what is spent, so it admits nothing.",
        "Ask an administrator to raise the limit. Nothing was charged.",
    ),
    errors.Conflict: ProblemText(
        "The name is taken, or the present state does not allow this. Nothing was changed.",
        "`detail` says what is in the way. Change that first, or choose another name.",
    ),
    errors.DatasetClosed: ProblemText(
        "Nothing new is answered about this dataset. Stored answers are still returned.",
        "Ask an administrator to reopen the dataset. Nothing was charged.",
    ),
    errors.StillRunning: ProblemText(
        "Another attempt at the same request is still running.",
        "Send the same request with the same key after `Retry-After` seconds.",
    ),
    errors.StreamEnded: ProblemText(
        "The stream answers nothing more. No ask was used.",
        "Open another stream, which is charged anew.",
    ),
    errors.TooManyRunning: ProblemText(
        "Too many questions are running on this server, or too many of them are yours. "
        "Nothing was charged.",
        "Send the same request with the same key after `Retry-After` seconds.",
    ),
    errors.EngineUnavailable: ProblemText(
        "The source of the data cannot be read now. Nothing was charged.",
        "Try again later. If it lasts, an administrator should check the source.",
    ),
    errors.SourceChanged: ProblemText(
        "The source is not the registered one any more. Nothing was charged.",
        "An administrator declares a new version with `refresh`, or restores the source.",
    ),
    errors.EngineFailed: ProblemText(
        "The engine failed after data may have been read. The reply never says why.",
        "Try again. If it lasts, the operator should read the log of the server.",
    ),
    errors.QuestionForfeited: ProblemText(
        "The question was charged and could not be answered. The charge stays.",
        "Nothing answers it under this key. Ask again with a new key, which is charged again.",
    ),
    errors.QuestionVoided: ProblemText(
        "The prepared data were gone, or the question was cancelled in time. The charge was given "
        "back.",
        "Ask again with a new `Idempotency-Key`.",
    ),
    errors.LedgerBehind: ProblemText(
        "The ledger was restored from an older copy, or changed. Nothing is charged until the "
        "difference is booked.",
        "An administrator compares the ledger with its anchors and sends "
        "`POST /v1/ledger/reconcile`.",
    ),
    errors.SecretUnavailable: ProblemText(
        "This server has no key for the secret of the stream, or not the right one.",
        "The operator sets `BURSAR_SECRET_KEY` to the same key on every server.",
    ),
    errors.StoreUnavailable: ProblemText(
        "The ledger cannot be reached. The request may or may not have been carried out.",
        "Send the same request with the same key again; it is carried out once at most.",
    ),
}
# Problems of the HTTP layer, which no error class stands for. The status of `error` varies.
OTHERS: dict[str, tuple[int | None, ProblemText]] = {
    "method-not-allowed": (
        405,
        ProblemText("This path takes another method.", "Use a method that `Allow` lists."),
    ),
    "internal-error": (
        500,
        ProblemText(
            "The service made a mistake. The reply reveals nothing; the log has the kind of error.",
            "Send the same request with the same key again. If it lasts, inform the operator.",
        ),
    ),
    "error": (
        None,
        ProblemText(
            "The request could not be handled, for a reason that has no type of its own.",
            "The status says what kind of reason it was.",
        ),
    ),
}


class ProblemType(NamedTuple):
    """A type of problem as its page shows it."""

    name: str
    title: str
    status: int | None
    text: ProblemText


def _all() -> dict[str, ProblemType]:
    kinds: dict[str, tuple[int | None, ProblemText]] = {
        slug(kind): (status, TEXTS[kind]) for kind, status in STATUSES.items()
    }
    return {
        name: ProblemType(name, TITLES.get(status or 0, "Error"), status, text)
        for name, (status, text) in (kinds | OTHERS).items()
    }


PROBLEM_TYPES = _all()
