"""``__all__`` is sorted and complete."""

from __future__ import annotations

import ast
import pkgutil
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import discreet

MODULES = [
    "discreet",
    *(found.name for found in pkgutil.walk_packages(discreet.__path__, "discreet.")),
]


def only_shows(module: ModuleType) -> bool:
    """Is this a package whose ``__init__`` does nothing but import and list names?"""
    if not hasattr(module, "__path__") or not hasattr(module, "__all__"):
        return False
    nodes = ast.parse(Path(str(module.__file__)).read_text()).body
    return all(
        isinstance(node, ast.Import | ast.ImportFrom | ast.Assign | ast.Expr) for node in nodes
    )


PACKAGES = [name for name in MODULES if only_shows(import_module(name))]


def in_order(name: str) -> tuple[int, str]:
    """CONSTANTS, then Classes, then the rest, each by name: the order that ruff keeps."""
    kind = 0 if name.isupper() else 1 if name[:1].isupper() else 2
    return kind, name


@pytest.mark.parametrize(
    "name", [name for name in MODULES if hasattr(import_module(name), "__all__")]
)
def test_all_is_sorted_and_real(name):
    module = import_module(name)
    assert list(module.__all__) == sorted(module.__all__, key=in_order)
    assert len(set(module.__all__)) == len(module.__all__)
    for member in module.__all__:
        assert hasattr(module, member), f"{name}.{member} does not exist"


@pytest.mark.parametrize("name", PACKAGES)
def test_all_is_complete(name):
    """Whatever a package imports from its own modules to show is shown."""
    module = import_module(name)
    public = {
        member
        for member, value in vars(module).items()
        if not member.startswith("_")
        and not isinstance(value, ModuleType)
        and str(getattr(value, "__module__", "")).startswith(f"{name}.")
    }
    assert public <= set(module.__all__)


def test_the_noise_of_the_library():
    assert import_module("discreet.noise").__all__ == [
        "bernoulli",
        "bernoulli_exp",
        "discrete_gaussian",
        "discrete_laplace",
        "exponential_choice",
        "geometric",
        "permute_and_flip",
        "random_permutation",
        "sample_without_replacement",
        "staircase",
        "uniform_below",
    ]


def test_the_public_face_fits_one_screen():
    assert len(discreet.__all__) <= 26
