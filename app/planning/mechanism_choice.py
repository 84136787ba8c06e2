"""Mechanism choice: all mechanisms that can serve a query, with price and error, and the best.

If the query names none, the planner chooses the mechanism with the least expected error among those
that every paying account can count. Nothing here depends on data.
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
    """A mechanism that can serve the query."""

    kind: str
    release: Release
    payable: bool  # true if every account that would pay can count its loss


def options(
    question: Question, card: Card, currencies: frozenset[str], *, include_named: bool = False
) -> list[Option]:
    """All mechanisms for a query, or the requested one. Raises Invalid if there is none.

    `include_named` adds those that are used only if a query names them, for lists shown to
    people."""
    shape = question.query.shape(card)
    target = _asked(question, currencies)
    kinds = [question.mechanism.kind] if question.mechanism else list(MECHANISMS)
    named = _NAMED_NOISES if include_named and question.mechanism is None else {}
    ways = [
        (kind, candidate, target if noise == target.noise else replace(target, noise=noise))
        for kind in kinds
        for candidate in (shape, *shape.alternatives)
        for noise in named.get(kind, (target.noise,))
    ]
    candidates: list[Option] = []
    reasons: list[Invalid] = []
    others: list[Invalid] = []
    for kind, candidate, way_target in ways:
        try:
            release = MECHANISMS[kind](candidate, way_target)
        except UnsupportedShape as why:
            others.append(Invalid.field("/mechanism/kind", str(why)))
        except CannotServe as why:
            reasons.append(Invalid.field("/privacy", str(why)))
        except Invalid as why:
            reasons.append(why)
        except ArithmeticError:  # one mechanism that cannot be calibrated leaves the others
            reasons.append(Invalid.field("/privacy", "too extreme: no noise can be calibrated"))
        else:
            candidates.append(Option(kind, release, _payable(currencies, release.loss)))
    if not candidates:
        raise (reasons or others)[0]
    return candidates


def choose(candidates: list[Option], question: Question, currencies: frozenset[str]) -> Option:
    """The payable option with the least noise, and among equals the least cost.

    If the query requests an accuracy, only the cost decides. If no option is payable, the first:
    the ledger will name the currencies that could pay."""
    payable = [option for option in candidates if option.payable] or candidates[:1]
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
    """The scarcest part of the loss: epsilon where it is added up, otherwise rho or mu^2."""
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
        mechanism.bound, *(None if share is None else Fraction(share) for share in shares)
    )
