"""One spelling of a JSON value: recorded bytes never change."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.exact.numbers import canonical_json

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda part: st.lists(part) | st.dictionaries(st.text(), part),
)


def test_the_bytes_are_those_of_the_first_ledger():
    value = {"é": [1, 2.5, None, True], "a": {"z": "\x7f\n", "b": "日"}}
    assert canonical_json(value) == '{"a":{"b":"日","z":"\x7f\\n"},"é":[1,2.5,null,true]}'
    assert (
        canonical_json(value, ascii_only=True)
        == '{"a":{"b":"\\u65e5","z":"\\u007f\\n"},"\\u00e9":[1,2.5,null,true]}'
    )


@given(values, st.booleans())
def test_it_is_read_back_and_written_again_alike(value, ascii_only):
    text = canonical_json(value, ascii_only=ascii_only)
    assert json.loads(text) == value
    assert canonical_json(json.loads(text), ascii_only=ascii_only) == text
    assert not ascii_only or text.isascii()


@given(st.dictionaries(st.text(), st.integers()), st.randoms())
def test_the_order_of_keys_does_not_show(value, random):
    items = list(value.items())
    random.shuffle(items)
    assert canonical_json(dict(items)) == canonical_json(value)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_json_cannot_say_is_not_said(value):
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical_json([value])
