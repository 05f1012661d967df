"""Under ``python -O`` every check still checks (``make optimised``).

``assert`` statements vanish there, in the library and in tests that are not
rewritten, so these tests raise by hand; they are also part of the plain run.
"""

from __future__ import annotations

import ast
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from statistical.fit import enumerated, fits

import discreet
from discreet.errors import InvalidParameter, Refusal
from discreet.exact.balls import ball
from discreet.exact.numbers import positive, proportion, whole
from discreet.noise import (
    bernoulli,
    bernoulli_exp,
    discrete_gaussian,
    discrete_laplace,
    exponential_choice,
    geometric,
    permute_and_flip,
    random_permutation,
    sample_without_replacement,
    uniform_below,
)
from discreet.noise.entropy import use_recording
from discreet.noise.gaussian import half_sum

SOURCE = Path(discreet.__file__).parent
N = 4_000_000


def must(condition: object, text: str = "") -> None:
    if not condition:
        pytest.fail(text or "the check failed")


def asserts_in(source: str) -> list[int]:
    if "assert" not in source:
        return []
    return [node.lineno for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Assert)]


def test_the_search_for_assert_finds_one():
    must(asserts_in("def f(x):\n    assert x > 0\n    return x\n") == [2])


def test_no_check_is_an_assert():
    texts = {path: path.read_text() for path in SOURCE.rglob("*.py")}
    must(SOURCE / "curate" / "curator.py" in texts)
    for path, text in texts.items():
        must(not asserts_in(text), f"{path}: a check that vanishes under -O")
        must("__debug__" not in text, f"{path}: behaves differently under -O")


REFUSED = {
    "scale 0": lambda: discrete_laplace(0),
    "scale nan": lambda: discrete_laplace(float("nan"), 5),
    "scale true": lambda: geometric(True),
    "variance -1": lambda: discrete_gaussian(-1),
    "size -1": lambda: discrete_laplace(3, -1),
    "size 2.5": lambda: discrete_gaussian(9, 2.5),
    "size true": lambda: bernoulli("0.5", True),
    "p 2": lambda: bernoulli(2),
    "x -1": lambda: bernoulli_exp([1, -1]),
    "n 0": lambda: uniform_below(0),
    "k > n": lambda: sample_without_replacement(3, 4),
    "no scores": lambda: exponential_choice([], 1),
    "rate -1": lambda: permute_and_flip([1, 2], -1),
    "weight 0": lambda: exponential_choice([1, 2], 1, weights=[1, 0]),
    "positive": lambda: positive("-1e-300", name="epsilon"),
    "proportion": lambda: proportion(1, name="delta"),
    "whole": lambda: whole(2.0, name="k"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_are_still_refusals(name):
    with pytest.raises(InvalidParameter):
        REFUSED[name]()


def test_a_foreign_code_is_still_an_error():
    with pytest.raises(KeyError):
        Refusal("X1", "w.", why="w.", fix="f.")


def test_a_recording_is_still_not_padded():
    with use_recording(b"short"), pytest.raises(InvalidParameter):
        discrete_laplace(3, 100)


def laplace(scale: Fraction):
    return lambda z: ball(1 / (2 * scale)).tanh() * ball(-abs(z) / scale).exp()


def gaussian(sigma: Fraction):
    return lambda z: ball(-(z**2) / (2 * sigma**2)).exp() / (1 + 2 * half_sum(sigma**2))


def test_the_laws_are_still_the_laws():
    for samples, law, scale, reach in (
        (discrete_laplace(2, N), laplace, Fraction(2), 100),
        (discrete_gaussian(4, N), gaussian, Fraction(2), 25),
    ):
        must(fits(samples, enumerated(law(scale), -reach, reach), -reach))
        for off in (Fraction(97, 100), Fraction(103, 100)):
            must(not fits(samples, enumerated(law(off * scale), -reach, reach), -reach))


def test_permutations_are_still_permutations():
    order = random_permutation(1000)
    must((np.sort(order) == np.arange(1000)).all())
