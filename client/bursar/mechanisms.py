"""Mechanisms that a question can name: `q.ask(epsilon=1, mechanism=smooth_sensitivity())`.

Name none, and the server takes the one with the least expected error that your account can pay for.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from bursar.ask.amounts import Amount, wire_amount
from bursar.ask.keywords import no_attribute

Noise = Literal[
    "student_t",
    "cauchy",
    "laplace",
    "gaussian",
    "laplace_log_normal",
    "uniform_log_normal",
    "arsinh_normal",
]


@dataclass(frozen=True)
class Mechanism:
    """A mechanism with its settings."""

    body: dict[str, Any]


def _mechanism(kind: str, **settings: Any) -> Mechanism:
    chosen = {name: value for name, value in settings.items() if value is not None}
    return Mechanism({"kind": kind, **chosen})


def _share(value: Amount | None) -> float | str | None:
    return None if value is None else wire_amount(value)


def laplace() -> Mechanism:
    """Laplace noise; pure epsilon."""
    return _mechanism("laplace")


def gaussian() -> Mechanism:
    """Gaussian noise; needs a rho, or an epsilon and a delta."""
    return _mechanism("gaussian")


def permute_and_flip() -> Mechanism:
    """Choose a candidate; never worse than the exponential mechanism."""
    return _mechanism("permute_and_flip")


def exponential() -> Mechanism:
    """Choose a candidate with a probability that grows with its score."""
    return _mechanism("exponential")


def noisy_max(
    *, noise: Literal["exponential", "laplace", "gumbel", "gaussian"] | None = None
) -> Mechanism:
    """Add noise to every score and choose the largest."""
    return _mechanism("noisy_max", noise=noise)


def randomized_response() -> Mechanism:
    """Every row reports its value with noise of its own."""
    return _mechanism("randomized_response")


def stability_histogram() -> Mechanism:
    """Counts of private keys above a threshold; needs a delta."""
    return _mechanism("stability_histogram")


def partition_selection() -> Mechanism:
    """Private keys without their counts; needs a delta."""
    return _mechanism("partition_selection")


def noisy_bound(*, bound_share: Amount | None = None) -> Mechanism:
    """Choose a bound privately, then add noise for it."""
    return _mechanism("noisy_bound", bound_share=_share(bound_share))


def noisy_gradient_descent(
    *,
    steps: int | None = None,
    clipping_norm: float | None = None,
    learning_rate: float | None = None,
    sampling_rate: float | None = None,
    expected_rows: int | None = None,
) -> Mechanism:
    """Learn by steps along noisy gradients."""
    return _mechanism(
        "noisy_gradient_descent",
        steps=steps,
        clipping_norm=clipping_norm,
        learning_rate=learning_rate,
        sampling_rate=sampling_rate,
        expected_rows=expected_rows,
    )


def propose_test_release(
    *,
    bound: float | None = None,
    noise: Literal["laplace", "gaussian"] | None = None,
    test_share: Amount | None = None,
    proposal_share: Amount | None = None,
) -> Mechanism:
    """Test first whether the data are stable; the answer may be withheld."""
    return _mechanism(
        "propose_test_release",
        bound=bound,
        noise=noise,
        test_share=_share(test_share),
        proposal_share=_share(proposal_share),
    )


def smooth_sensitivity(
    *,
    noise: Noise | None = None,
    beta: float | None = None,
    gamma: float | None = None,
    degrees: int | None = None,
    sigma: float | None = None,
    interval_epsilon: Amount | None = None,
) -> Mechanism:
    """Noise scaled to the data, through a bound that changes slowly between neighbours."""
    return _mechanism(
        "smooth_sensitivity",
        noise=noise,
        beta=beta,
        gamma=gamma,
        degrees=degrees,
        sigma=sigma,
        interval_epsilon=_share(interval_epsilon),
    )


def stable_value(*, ordered: bool = False) -> Mechanism:
    """Release the most frequent value exactly if it is far ahead; otherwise withhold it."""
    return _mechanism("stable_value", ordered=ordered)


if not TYPE_CHECKING:  # so that type checkers know which mechanisms there are

    def __getattr__(name: str) -> Any:
        raise no_attribute("bursar.mechanisms", name, globals())
