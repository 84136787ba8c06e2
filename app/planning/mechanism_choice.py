"""Which mechanism: every one that can serve a question, with its price and error, and the best.

Left to the planner, a question gets the mechanism with the least expected error among those that
every paying account can count. Nothing here depends on data.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

from app.accounting import COMPOSITION_RULES
from app.accounting.loss import Loss
from app.data.card import Card
from app.errors import Invalid
from app.mechanisms import MECHANISMS
from app.mechanisms.privacy_target import (
    CannotServe,
    GradientDescentParameters,
    PrivacyTarget,
    ProposedBoundParameters,
    SmoothSensitivityParameters,
    UnsupportedShape,
)
from app.mechanisms.release import Release
from app.mechanisms.selection import noisy_max
from app.planning.request import (
    GradientDescent,
    Mechanism,
    NoisyBound,
    ProposeTestRelease,
    Question,
    SmoothSensitivity,
    StableValue,
)

_NAMED_NOISES: dict[str, tuple[str | None, ...]] = {noisy_max.KIND: tuple(noisy_max.LAWS)}


@dataclass(frozen=True, slots=True)
class Option:
    """A mechanism that can serve the question."""

    kind: str
    release: Release
    payable: bool  # by every account that would pay


def options(
    question: Question, card: Card, currencies: frozenset[str], *, told: bool = False
) -> list[Option]:
    """All of them, or the one that was asked for. Raises Invalid if there is none. Where they are
    `told` to people, those are among them that are never chosen but by name."""
    shape = question.query.shape(card)
    asked = _asked(question, currencies)
    kinds = [question.mechanism.kind] if question.mechanism else list(MECHANISMS)
    named = _NAMED_NOISES if told and question.mechanism is None else {}
    ways = [
        (kind, each, asked if noise == asked.noise else replace(asked, noise=noise))
        for kind in kinds
        for each in (shape, *shape.alternatives)
        for noise in named.get(kind, (asked.noise,))
    ]
    found: list[Option] = []
    reasons: list[Invalid] = []
    others: list[Invalid] = []
    for kind, each, wanted in ways:
        try:
            release = MECHANISMS[kind](each, wanted)
        except UnsupportedShape as why:
            others.append(Invalid.field("/mechanism/kind", str(why)))
        except CannotServe as why:
            reasons.append(Invalid.field("/privacy", str(why)))
        except Invalid as why:
            reasons.append(why)
        except ArithmeticError:  # one mechanism that cannot be worked out leaves the others
            reasons.append(Invalid.field("/privacy", "so extreme that no noise can be worked out"))
        else:
            found.append(Option(kind, release, _payable(currencies, release.loss)))
    if not found:
        raise (reasons or others)[0]
    return found


def choose(found: list[Option], question: Question, currencies: frozenset[str]) -> Option:
    """Among those that can be paid for, the one whose noise spreads least, and of these, or if all
    are as accurate as was asked, the one which costs least; if none can be paid, the first: the
    ledger will say which currencies could."""
    payable = [option for option in found if option.payable] or found[:1]
    if question.privacy.half_width is None:
        return min(
            payable,
            key=lambda option: (
                option.release.standard_deviations,
                _cost(option.release.loss, currencies),
            ),
        )
    return min(payable, key=lambda option: _cost(option.release.loss, currencies))


def _cost(loss: Loss, currencies: frozenset[str]) -> int:
    """What is scarcest: epsilon where it is added up, otherwise what the curves make of it."""
    if currencies & {"pure", "approximate"}:
        return loss.epsilon
    return loss.mu_squared if currencies == {"gdp"} else loss.rho


def _payable(currencies: frozenset[str], loss: Loss) -> bool:
    rules = (COMPOSITION_RULES[currency] for currency in currencies)
    return all(rule.pays(loss) for rule in rules)


def _asked(question: Question, currencies: frozenset[str]) -> PrivacyTarget:
    privacy, mechanism = question.privacy, question.mechanism
    descent = GradientDescentParameters()
    if isinstance(mechanism, GradientDescent):
        descent = GradientDescentParameters(**mechanism.model_dump(exclude={"kind"}))
    smooth = None
    if isinstance(mechanism, SmoothSensitivity):
        smooth = SmoothSensitivityParameters(**mechanism.model_dump(exclude={"kind"}))
    bound_share = mechanism.bound_share if isinstance(mechanism, NoisyBound) else None
    return PrivacyTarget(
        epsilon=privacy.epsilon,
        delta=privacy.delta,
        rho=privacy.rho,
        half_width=privacy.half_width,
        confidence=privacy.confidence or question.confidence,
        noise=mechanism.noise if isinstance(mechanism, Mechanism | ProposeTestRelease) else None,
        descent=descent,
        proposal=_proposal(mechanism) if isinstance(mechanism, ProposeTestRelease) else None,
        bound_share=None if bound_share is None else Fraction(bound_share),
        ordered=mechanism.ordered if isinstance(mechanism, StableValue) else None,
        smooth=smooth,
        payable=partial(_payable, currencies),
    )


def _proposal(mechanism: ProposeTestRelease) -> ProposedBoundParameters:
    shares = (mechanism.test_share, mechanism.proposal_share)
    return ProposedBoundParameters(
        mechanism.bound, *(None if each is None else Fraction(each) for each in shares)
    )
