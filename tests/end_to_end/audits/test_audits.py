"""Black-box audits through HTTP: a lower bound on the loss, from answers alone, is below the
charge.

For every kind of question and mechanism, a real server answers 400 fresh questions about each of
two tiny neighbouring tables. `make test` does so for some cases, `make audit` for all and with more
answers. The first 100 answers per table choose an event, and the others count it. Clopper and
Pearson bound both probabilities, in both directions. All bounds of all cases together are wrong
with probability at most 1e-6. So this also bounds the false accusations of sound mechanisms.

Pure mechanisms are held to the charged epsilon: the probabilities of an event differ by a factor of
at most exp(epsilon). Gaussian noise is held to its rho, which bounds the Kullback-Leibler
divergence of the answers, and hence of any event. If a single number moves (counts, sums, choices,
reports), these sizes reveal a loss of two to four times the charge. Answers made of many
measurements show less of each, so they are asked at a larger loss.
"""

from pathlib import Path

import pytest

from app.mechanisms import MECHANISMS
from app.queries import QUERIES
from tests.audit import cases as audited_cases
from tests.conftest import Counts, Template
from tests.end_to_end.audits.audit_bounds import RUNS, Tables, audited
from tests.end_to_end.audits.audited_questions import CASES
from tests.end_to_end.audits.planted_bugs import HALVED, NARROW, QUIET
from tests.server import World

pytestmark = [pytest.mark.statistical, pytest.mark.invariant("I24")]


@pytest.fixture(scope="module")
def tables(live: World) -> Tables:
    return Tables(live)


# One case of each family and relation; some of them catch the saboteurs below.
SUITE = {
    *("count-laplace", "histogram-laplace", "linear_regression-laplace", "sum-gaussian"),
    *("mean-gaussian", "mode-permute_and_flip", "quantile-exponential"),
    *("mode-noisy_max-exponential", "median-noisy_max-laplace", "mode-noisy_max-gumbel"),
    *("median-student_t", "median of rows replaced-cauchy", "median-laplace_log_normal"),
    "randomized_column on a grid-randomized_response",
}


@pytest.mark.parametrize("name", audited_cases(CASES, SUITE))
def test_answers_about_neighbours_prove_no_more_loss_than_was_charged(
    tables: Tables, name: str, counts: Counts
) -> None:
    bound, charge = audited(tables, CASES[name])
    print(f"{name}: at least {bound:.2f}, charged {charge:.2f}")
    assert bound <= charge
    counts("answers audited over HTTP", 2 * RUNS)


# Other files audit the rest: test_keys_audit.py, test_persons_audit.py, test_regression_audit.py,
# test_withholding_audit.py.
KINDS_ELSEWHERE = {"count_distinct", "keys", "logistic_regression", "triangles"}
MECHANISMS_ELSEWHERE = {
    *("stability_histogram", "partition_selection", "noisy_gradient_descent"),
    *("propose_test_release", "stable_value", "noisy_bound"),
}


def test_every_kind_and_every_mechanism_is_audited() -> None:
    kinds = {case.query["kind"] for case in CASES.values()}
    mechanisms = {case.mechanism["kind"] for case in CASES.values()}
    assert kinds | KINDS_ELSEWHERE == set(QUERIES)
    assert mechanisms | MECHANISMS_ELSEWHERE == set(MECHANISMS)
    assert not kinds & KINDS_ELSEWHERE
    assert not mechanisms & MECHANISMS_ELSEWHERE
    assert {CASES[name].mechanism["kind"] for name in SUITE} == mechanisms


CAUGHT = ["count-laplace", "count-gaussian", "mode-permute_and_flip", "quantile-exponential"]

SMOOTH_CAUGHT = ["median-student_t"]


@pytest.mark.saboteur
@pytest.mark.parametrize(
    ("sabotage", "names"),
    [
        pytest.param(HALVED, ["sum-laplace"], id="a sensitivity halved"),
        pytest.param(QUIET, CAUGHT, id="too little noise"),
        pytest.param(NARROW, SMOOTH_CAUGHT, id="a smooth sensitivity too small"),
    ],
)
def test_a_server_that_charges_too_little_is_caught(
    peopled: Template, tmp_path: Path, sabotage: str, names: list[str], counts: Counts
) -> None:
    """The bugs halve a sensitivity or the noise, choose at four times the rate, or use an eighth of
    a smooth sensitivity.

    With 1,000 answers per table, the bounds exceed the charge by more than five deviations.
    """
    world = peopled("sqlite", tmp_path / "ledger")
    try:
        world.serve(sabotage=sabotage)
        tables = Tables(world)
        for name in names:
            bound, charge = audited(tables, CASES[name], runs=1000)
            print(f"{name}: at least {bound:.2f}, charged {charge:.2f}")
            assert bound > charge, name
            counts("answers of saboteurs", 2000)
    finally:
        world.ledger.stop()
