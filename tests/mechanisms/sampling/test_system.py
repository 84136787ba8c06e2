"""Draws fit the discrete Laplace law, and draws of a scale that is 10 % or 30 % off do not.

Each chi-square test raises a false alarm with probability 1e-6. It misses a planted scale with less
than 1e-6 (at least 5.5 standard deviations). Noise is never seeded.
"""

import os
import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pytest

from app.mechanisms.sampling.system import SystemRandom, secret_text
from tests.mechanisms.noise.noise_law import DRAWS, FALSE_ALARM, chi_square, chi_square_tail, edges

TOP = Path(__file__).resolve().parents[3]
SCALES = [0.3, 1.0, 3.7, 250.0, 1e6, 2.0**55]
noise = SystemRandom()


def draws_of(scale: float, at_once: int = DRAWS) -> list[int]:
    return [z for _ in range(DRAWS // at_once) for z in noise.discrete_laplace(scale, at_once)]


@pytest.mark.statistical
@pytest.mark.parametrize("scale", SCALES)
def test_bulk_draws_fit_the_law(scale: float) -> None:
    assert chi_square(draws_of(scale), scale) > FALSE_ALARM


@pytest.mark.statistical
@pytest.mark.parametrize("scale", [0.3, 3.7, 2.0**55])
@pytest.mark.parametrize("at_once", [1, 15])
def test_single_draws_fit_the_law(scale: float, at_once: int) -> None:
    assert chi_square(draws_of(scale, at_once), scale) > FALSE_ALARM


@pytest.mark.statistical
@pytest.mark.parametrize("factor", [1 / 1.3, 1 / 1.1, 1.1, 1.3])
@pytest.mark.parametrize("scale", SCALES[:-1])
def test_a_scale_that_is_off_by_a_tenth_is_rejected(scale: float, factor: float) -> None:
    assert chi_square(draws_of(scale * factor), scale) < FALSE_ALARM


@pytest.mark.statistical
def test_noise_that_is_shifted_rounded_or_one_sided_is_rejected() -> None:
    right = draws_of(30.0)
    assert chi_square([z + 3 for z in right], 30.0) < FALSE_ALARM
    assert chi_square([z // 60 * 60 for z in right], 30.0) < FALSE_ALARM
    assert chi_square([abs(z) for z in right], 30.0) < FALSE_ALARM


def test_the_bins_and_the_tail_are_correct() -> None:
    assert all(len(edges(scale)) >= 1 for scale in SCALES)
    assert len(edges(1e6)) >= 10
    assert chi_square_tail(0.0, 2) == 1.0
    assert chi_square_tail(18.307, 10) == pytest.approx(0.05, rel=1e-3)
    assert chi_square_tail(37.566, 20) == pytest.approx(0.01, rel=1e-3)


def test_draws_are_integers_of_the_requested_number() -> None:
    for size in (0, 1, 16, 17, 1000):
        draws = noise.discrete_laplace(5.0, size)
        assert len(draws) == size
        assert all(type(z) is int for z in draws)


@pytest.mark.parametrize(
    "scale", [0.0, -1.0, float("nan"), float("inf"), 2.0**55 * 1.01, -float("inf")]
)
def test_a_scale_without_noise_or_beyond_64_bits_is_refused(scale: float) -> None:
    for size in (1, 100):
        with pytest.raises(ValueError, match="scale"):
            noise.discrete_laplace(scale, size)


def test_no_two_samplers_threads_or_processes_draw_the_same_even_after_a_fork() -> None:
    """160 draws of scale 2^50: two of them are equal with probability below 1e-10."""
    draws: list[int] = []
    for sampler in (SystemRandom(), SystemRandom()):
        draws += sampler.discrete_laplace(2.0**50, 20)
    shared = SystemRandom()
    drawn: list[list[int]] = []
    threads = [
        threading.Thread(target=lambda: drawn.append(shared.discrete_laplace(2.0**50, 10)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    draws += [z for each in drawn for z in each]
    script = (
        "import os\n"
        "from app.mechanisms.sampling.system import SystemRandom\n"
        "noise = SystemRandom()\n"
        "noise.discrete_laplace(2.0**50, 1), noise.discrete_laplace(2.0**50, 20)\n"
        "child = os.fork()\n"
        "text = ' '.join(map(str, noise.discrete_laplace(2.0**50, 10)\n"
        "    + noise.discrete_laplace(2.0**50, 20)))\n"
        "os.write(1, (text + '\\n').encode())\n"
        "os.waitpid(child, 0) if child else os._exit(0)\n"
    )
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", script], cwd=TOP, capture_output=True, text=True, check=True
        )
        assert len(done.stdout.splitlines()) == 2
        draws += [int(word) for word in done.stdout.split()]
    assert len(draws) == 40 + 40 + 120
    assert len(set(draws)) == len(draws)


def test_single_draws_leak_no_memory() -> None:
    process = psutil.Process(os.getpid())
    for _ in range(2_000):
        noise.discrete_laplace(10.0, 1)
    before = process.memory_info().rss
    for _ in range(60_000):
        noise.discrete_laplace(10.0, 1)
    # a leak of 32 bytes per draw would be noticed
    assert process.memory_info().rss - before < 2_000_000


def test_many_scales_keep_a_bounded_number_of_samplers() -> None:
    sampler = SystemRandom()
    for number in range(1100):
        sampler.discrete_laplace(1.0 + number / 1000, 1)
    assert len(sampler._samplers) <= 1024


def test_every_number_below_a_bound_occurs_and_no_other() -> None:
    """One of seven is missing in 2,000 draws with probability below 1e-130."""
    assert {noise.below(7) for _ in range(2000)} == set(range(7))


def test_secret_texts_are_long_and_never_repeat() -> None:
    texts = {secret_text(32) for _ in range(1000)}
    assert len(texts) == 1000
    assert min(map(len, texts)) >= 43
