"""Classes of fields behave as those of ``dataclasses``, which is asked the same each time."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import subprocess
import sys
from dataclasses import field
from functools import partial
from typing import Any, ClassVar

import pytest

from discreet.exact import records


def make(dataclass: Any) -> dict[str, type]:
    """The same classes, made by either."""

    @dataclass(frozen=True, slots=True)
    class Point:
        """A point."""

        x: int
        y: int = 7
        names: list[str] = field(default_factory=list, compare=False)
        most: ClassVar[int] = 5

    @dataclass(frozen=True, slots=True)
    class Checked:
        low: int
        high: int
        size: int = field(init=False)
        kind: str = field(init=False, default="span")

        def __post_init__(self) -> None:
            if self.high < self.low:
                raise ValueError("upside down")
            object.__setattr__(self, "size", self.high - self.low)

    @dataclass(frozen=True, slots=True)
    class Named(Point):
        name: str = field(kw_only=True)
        secret: str = field(kw_only=True, default="s", repr=False)

    @dataclass(frozen=True, slots=True, eq=False)
    class Alone:
        x: int

    @dataclass(slots=True)
    class Open:
        x: int
        seen: dict[str, int] = field(default_factory=dict)

    @dataclass(frozen=True)
    class Loose:
        x: int
        y: int = field(init=False, default=3)

        def __repr__(self) -> str:
            return "loose"

    @dataclass(frozen=True, slots=True, init=False)
    class Own:
        x: int

        def __init__(self, *, twice: int) -> None:
            object.__setattr__(self, "x", 2 * twice)

    @dataclass(frozen=True, slots=True)
    class Empty:
        """Nothing."""

    made = (Point, Checked, Named, Alone, Open, Loose, Own, Empty)
    return {one.__name__: one for one in made}


OURS, THEIRS = make(records.dataclass), make(dataclasses.dataclass)
CALLS = [
    ("Point", (3,), {}),
    ("Point", (3,), {"y": 4}),
    ("Point", (3, 4, ["a"]), {}),
    ("Point", (), {"x": 3, "names": ["b"]}),
    ("Point", (), {}),
    ("Point", (1, 2, [], 4), {}),
    ("Point", (1,), {"z": 4}),
    ("Checked", (2, 9), {}),
    ("Checked", (9, 2), {}),
    ("Named", (3, 4), {"name": "n"}),
    ("Named", (3,), {"name": "n", "secret": "t"}),
    ("Named", (3, 4, [], "n"), {}),
    ("Alone", (3,), {}),
    ("Open", (3,), {}),
    ("Loose", (3,), {}),
    ("Own", (), {"twice": 3}),
    ("Empty", (), {}),
]


def outcome(call: Any) -> object:
    try:
        return call()
    except Exception as error:
        # A message of Python's names the function, which is called after its class here.
        return type(error), str(error).rpartition("<locals>.")[2]


def show(value: object) -> str:
    return repr(value).replace("<locals>.", "")


@pytest.mark.parametrize("often", [False, True], ids=["rarely", "often"])
@pytest.mark.parametrize(("name", "given", "named"), CALLS)
def test_an_object_is_made_shown_compared_and_hashed_alike(monkeypatch, name, given, named, often):
    monkeypatch.setattr(records, "OFTEN", 0 if often else 10**9)
    OURS = make(records.dataclass)
    ours, theirs = (outcome(lambda k=kinds[name]: k(*given, **named)) for kinds in (OURS, THEIRS))
    if isinstance(theirs, tuple):
        assert ours == theirs
        return
    assert show(ours) == show(theirs)
    again, other = (kinds[name](*given, **named) for kinds in (OURS, THEIRS))
    pairs = (ours, again), (theirs, other)
    assert (ours == again) == (theirs == other)
    assert (ours == theirs) is False
    hashed = [outcome(lambda a=a, b=b: hash(a) == hash(b)) for a, b in pairs]
    assert hashed[0] == hashed[1]
    assert ours.__match_args__ == theirs.__match_args__
    for one in (ours, theirs):
        assert show(copy.copy(one)) == show(one)
    if name not in ("Own", "Loose"):
        state = ours.__reduce_ex__(4)[2], theirs.__reduce_ex__(4)[2]
        assert state[0] == state[1]


@pytest.mark.parametrize("name", ["Point", "Checked", "Named", "Alone", "Loose", "Empty"])
def test_what_is_frozen_stays_so(name):
    given = dict.fromkeys(inspect.signature(THEIRS[name]).parameters, 3)
    both = [kinds[name](**given) for kinds in (OURS, THEIRS)]
    for attribute in [f.name for f in dataclasses.fields(THEIRS[name])]:
        for change, more in ((setattr, (1,)), (delattr, ())):
            tried = [outcome(partial(change, one, attribute, *more)) for one in both]
            assert tried[0] == tried[1]
    with pytest.raises(dataclasses.FrozenInstanceError):  # a TypeError with slots, in Python 3.11
        both[0].other = 3


@pytest.mark.parametrize("name", list(THEIRS))
def test_fields_signatures_and_words_are_those_of_dataclasses(name):
    ours, theirs = OURS[name], THEIRS[name]
    told = ("name", "type", "init", "repr", "compare", "kw_only")
    assert [[getattr(f, t) for t in told] for f in dataclasses.fields(ours)] == [
        [getattr(f, t) for t in told] for f in dataclasses.fields(theirs)
    ]
    assert str(inspect.signature(ours)) == str(inspect.signature(theirs))
    assert ours.__annotations__ == theirs.__annotations__
    if theirs.__doc__ and not theirs.__doc__.startswith(name + "("):
        assert ours.__doc__ == theirs.__doc__
    assert getattr(ours, "__slots__", None) == getattr(theirs, "__slots__", None)


def test_replacing_and_matching():
    point = OURS["Point"](3, 4)
    assert show(dataclasses.replace(point, y=9)) == "make.Point(x=3, y=9, names=[])"
    kind = OURS["Point"]
    match point:
        case kind(x, y):
            assert (x, y) == (3, 4)
    assert kind.most == 5


def test_a_class_that_is_not_decorated_inherits_all_of_it():
    class More(OURS["Point"]):
        """Another one."""

    more = More(3, y=5)
    assert (more.x, more.y) == (3, 5)
    with pytest.raises(dataclasses.FrozenInstanceError):
        more.x = 4


@records.dataclass(frozen=True, slots=True)
class Kept:
    x: int
    y: str = "y"


def test_objects_are_pickled():
    kept = Kept(3)
    assert pickle.loads(pickle.dumps(kept)) == kept
    assert copy.deepcopy(kept) == kept


def test_nothing_is_compiled_before_it_is_used_often():
    program = """
import builtins, dataclasses
from discreet.exact.records import dataclass

compiled = []
execute = builtins.exec
builtins.exec = lambda *given: compiled.append(given[0]) or execute(*given)

@dataclass(frozen=True, slots=True)
class Point:
    x: int

assert not compiled, compiled
assert Point(3) == Point(3) and hash(Point(3)) == hash(Point(3))
assert not compiled, compiled
assert all(Point(n).x == n for n in range(20))
assert len(compiled) == 1, compiled
"""
    subprocess.run([sys.executable, "-c", program], check=True)
