"""Classes of fields, as ``dataclasses`` makes them, whose constructors are written at first use.

``dataclasses`` compiles six methods for each class when it is imported: half a millisecond, two
hundred times before the first answer.  Here fields, slots and what may be given are found by
``dataclasses`` itself; comparing, hashing, showing and protecting need no code of their own, and
``__init__`` is compiled when the first object is made.  What a class promises is the same.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from operator import attrgetter
from reprlib import recursive_repr
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import inspect
    from dataclasses import dataclass
else:

    def dataclass(*, init=True, repr=True, eq=True, frozen=False, slots=False):  # noqa: A002
        """Make a class of fields: the words are those of ``dataclasses.dataclass``."""

        def make(kind):
            return _make_class(kind, init=init, repr=repr, eq=eq, frozen=frozen, slots=slots)

        return make


def _make_class(
    kind: type[Any],
    *,
    init: bool,
    repr: bool,  # noqa: A002 (the word of dataclasses)
    eq: bool,
    frozen: bool,
    slots: bool,
) -> type[Any]:
    own = dict(kind.__dict__)
    if kind.__doc__ is None:
        kind.__doc__ = kind.__name__  # or the signature is looked up, to be shown as one
    annotations = own.get("__annotations__", {})
    # What a text means is looked for in modules, field by field; ours says it by its first word.
    kind.__annotations__ = {name: _read_kind(kind, text) for name, text in annotations.items()}
    made: type[Any] = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots)(kind)
    made.__annotations__ = annotations
    made.__doc__ = own.get("__doc__")
    fields = dataclasses.fields(made)
    for field in fields:
        if field.name in annotations:
            field.type = annotations[field.name]
    if init:
        _write_init(made, fields, frozen=frozen)
    methods: dict[str, Any] = {}
    if repr and "__repr__" not in own:
        methods["__repr__"] = _show
    if eq:
        if "__eq__" not in own:
            methods["__eq__"] = _write_eq([f.name for f in fields if f.compare])
        if own.get("__hash__") is None:
            hashed = [f.name for f in fields if (f.compare if f.hash is None else f.hash)]
            methods["__hash__"] = _write_hash(hashed) if frozen else None
    if frozen:
        methods |= {"__setattr__": _refuse_to_set, "__delattr__": _refuse_to_delete}
        if slots and "__getstate__" not in own:
            methods |= {"__getstate__": _list_fields, "__setstate__": _restore_fields}
    for name, method in methods.items():
        setattr(made, name, method)
    return made


def _read_kind(kind: type[Any], text: Any) -> Any:
    """The annotation of a field, as ``dataclasses`` needs it: whether there is a field at all."""
    word = str(text)
    if word.startswith(("InitVar", "KW_ONLY")):
        raise TypeError(f"{kind.__name__}: what is given and not kept is not known here")
    return text if word.startswith(("ClassVar", "typing.ClassVar")) else object


# --- the constructor ---------------------------------------------------------------------------

OFTEN = 8
"""How many objects are made one field at a time before the constructor is compiled."""


class _Factory:
    """In the place of a default that is made anew for each object."""

    def __repr__(self) -> str:
        return "<factory>"


_FACTORY = _Factory()


class _Signature:
    """How a class is called, for whoever asks: read off the constructor, compiled for it."""

    def __init__(self, kind: type[Any], compiled: Callable[[], Any]) -> None:
        self._kind = kind
        self._compiled = compiled

    def __get__(self, value: object, owner: type[Any]) -> inspect.Signature | None:
        if value is not None or owner is not self._kind:
            return None  # a class that inherits it says itself how it is called
        import inspect

        whole = inspect.signature(self._compiled())
        return whole.replace(parameters=[*whole.parameters.values()][1:])


Fields = tuple[dataclasses.Field[Any], ...]


def _write_init(kind: type[Any], fields: Fields, *, frozen: bool) -> None:
    """A constructor that is compiled once it is called often; till then it goes by the fields."""
    made = 0

    def compile_once() -> Any:
        found = _compile_init(kind, fields, frozen=frozen)
        if kind.__init__ is __init__:
            kind.__init__ = found
        return found

    def __init__(self: Any, *given: Any, **named: Any) -> None:  # noqa: N807
        nonlocal made
        made += 1
        values = None if made > OFTEN else _take(fields, given, named)
        if values is None:
            compile_once()(self, *given, **named)  # which says what is missing, or too much
            return
        for name, value in values.items():
            object.__setattr__(self, name, value)
        if hasattr(self, "__post_init__"):
            self.__post_init__()

    __init__.__qualname__ = f"{kind.__qualname__}.__init__"
    kind.__init__ = __init__
    kind.__signature__ = _Signature(kind, compile_once)


def _take(fields: Fields, given: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any] | None:
    """The value of each field; None if these arguments are not the right ones."""
    plain = [f.name for f in fields if f.init and not f.kw_only]
    if len(given) > len(plain):
        return None
    said = dict(zip(plain, given, strict=False))
    if not said.keys().isdisjoint(named):
        return None
    said |= named
    values: dict[str, Any] = {}
    for field in fields:
        name = field.name
        if field.init and name in said:
            values[name] = said.pop(name)
        elif field.default_factory is not dataclasses.MISSING:
            values[name] = field.default_factory()
        elif field.default is not dataclasses.MISSING:
            values[name] = field.default
        elif field.init:
            return None
    return None if said else values


def _compile_init(kind: type[Any], fields: Fields, *, frozen: bool) -> Any:
    known: dict[str, Any] = {"_factory": _FACTORY, "_put": object.__setattr__}
    plain: list[str] = ["self"]
    named: list[str] = []
    body: list[str] = []
    for field in fields:
        name = value = field.name
        if field.default_factory is not dataclasses.MISSING:
            known[f"_make_{name}"] = field.default_factory
            value = f"_make_{name}()"
            if field.init:
                value = f"{value} if {name} is _factory else {name}"
        elif not field.init:
            if field.default is dataclasses.MISSING:
                continue  # set by __post_init__
            known[f"_given_{name}"] = field.default
            value = f"_given_{name}"
        if field.init:
            (named if field.kw_only else plain).append(_write_parameter(field, known))
        if not frozen:
            body.append(f"self.{name} = {value}")
        elif isinstance(slot := getattr(kind, name, None), MemberDescriptorType):
            known[f"_put_{name}"] = slot.__set__
            body.append(f"_put_{name}(self, {value})")
        else:
            body.append(f"_put(self, {name!r}, {value})")
    if hasattr(kind, "__post_init__"):
        body.append("self.__post_init__()")
    parameters = ", ".join([*plain, "*", *named] if named else plain)
    lines = "\n  ".join(body or ["pass"])
    exec(f"def __init__({parameters}):\n  {lines}", known)  # noqa: S102 (names of fields alone)
    made = known["__init__"]
    made.__qualname__ = f"{kind.__qualname__}.__init__"
    made.__annotations__ = {f.name: f.type for f in fields if f.init} | {"return": None}
    return made


def _write_parameter(field: dataclasses.Field[Any], known: dict[str, Any]) -> str:
    if field.default is not dataclasses.MISSING:
        known[f"_given_{field.name}"] = field.default
        return f"{field.name}=_given_{field.name}"
    if field.default_factory is not dataclasses.MISSING:
        return f"{field.name}=_factory"
    return field.name


# --- what needs no code of its own ---------------------------------------------------------------


@recursive_repr()
def _show(self: Any) -> str:
    shown = (f"{f.name}={getattr(self, f.name)!r}" for f in dataclasses.fields(self) if f.repr)
    return f"{self.__class__.__qualname__}({', '.join(shown)})"


def _write_eq(names: list[str]) -> Any:
    read = _read_all(names)

    def __eq__(self: Any, other: object) -> Any:  # noqa: N807
        if other.__class__ is self.__class__:
            return read(self) == read(other)
        return NotImplemented

    return __eq__


def _write_hash(names: list[str]) -> Any:
    read = _read_all(names)

    def __hash__(self: Any) -> int:  # noqa: N807
        return hash(read(self))

    return __hash__


def _read_all(names: list[str]) -> Any:
    """A function that gives the fields of an object as a tuple."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda value: tuple([getattr(value, name) for name in names])


def _is_protected(value: object, name: str) -> bool:
    """Whether an attribute is a field, or of a class that has nothing but fields."""
    kind = type(value)
    return "__dataclass_fields__" in kind.__dict__ or name in kind.__dataclass_fields__  # type: ignore[attr-defined]


def _refuse_to_set(self: Any, name: str, value: object) -> None:
    if _is_protected(self, name):
        raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
    object.__setattr__(self, name, value)


def _refuse_to_delete(self: Any, name: str) -> None:
    if _is_protected(self, name):
        raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
    object.__delattr__(self, name)


def _list_fields(self: Any) -> list[Any]:
    return [getattr(self, field.name) for field in dataclasses.fields(self)]


def _restore_fields(self: Any, state: list[Any]) -> None:
    for field, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)


__all__ = ["dataclass"]
