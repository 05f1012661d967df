"""The settings of a session: what is offered, and what clients set without effect here.

``SET discreet.epsilon = '0.1'`` (or rho, delta, within, confidence) offers for every
question that does not say otherwise itself; of epsilon, rho and within the one that was
set last is meant.  ``SET discreet.margins = on`` shows both ends of what each number may be, and
``SET discreet.fresh = on`` measures anew, whatever is known already.  ``SHOW discreet.balance``
says what is left; it is the account's, and is not set.
Other settings are taken if they change nothing that is sent, and refused otherwise.
"""

from __future__ import annotations

import re
from dataclasses import replace

from discreet.errors import InvalidParameter, QuestionRefusal
from discreet.question.offer import Offer
from discreet.server.offers import AMOUNTS, make_offer
from discreet.server.postgres.reports import Said
from discreet.server.postgres.tokens import Part, Token, unquote

PREFIX = "discreet."
BALANCE = f"{PREFIX}balance"
_ALONE = ("epsilon", "rho", "within")
MARGINS, FRESH = "margins", "fresh"
_SWITCHES = (MARGINS, FRESH)
_EXAMPLES = {
    "epsilon": "0.1",
    "rho": "0.01",
    "delta": "1e-9",
    "within": "50",
    "confidence": "0.95",
}
_IGNORED = {
    "application_name": "",
    "bytea_output": "hex",
    "client_min_messages": "notice",
    "default_transaction_deferrable": "off",
    "default_transaction_isolation": "read committed",
    "default_transaction_read_only": "on",
    "extra_float_digits": "1",
    "idle_in_transaction_session_timeout": "0",
    "intervalstyle": "postgres",
    "jit": "off",
    "lock_timeout": "0",
    "search_path": '"$user", public',
    "statement_timeout": "0",
    "synchronize_seqscans": "on",
    "timezone": "UTC",
    "transaction_isolation": "read committed",
    "transaction_read_only": "on",
    "xmloption": "content",
}
_FIXED = {
    "client_encoding": ("UTF8", ("utf8", "utf-8", "unicode")),
    "datestyle": ("ISO, MDY", ("iso", "iso, mdy", "iso,mdy", "iso, dmy", "iso, ymd", "mdy")),
    "standard_conforming_strings": ("on", ("on", "true", "1")),
}
_ON = ("on", "true", "yes", "1", "t", "y")
_OFF = ("off", "false", "no", "0", "f", "n", "")
STATUS = {
    "server_encoding": "UTF8",
    "client_encoding": "UTF8",
    "DateStyle": "ISO, MDY",
    "IntervalStyle": "postgres",
    "TimeZone": "UTC",
    "integer_datetimes": "on",
    "standard_conforming_strings": "on",
    "is_superuser": "off",
    "in_hot_standby": "off",
    "default_transaction_read_only": "on",
}
"""What is told when a session begins."""


class Variables:
    """The settings of one session; a transaction that is rolled back takes its settings along."""

    def __init__(self, defaults: dict[str, str]) -> None:
        self._defaults = {f"{PREFIX}{name}": amount for name, amount in defaults.items()}
        self._set: dict[str, str] = dict(self._defaults)
        self._before: dict[str, str] | None = None
        self._local: dict[str, str | None] = {}

    # --- reading ------------------------------------------------------------------------------

    @property
    def amounts(self) -> dict[str, str]:
        """What is offered, as it was written."""
        return {name: self._set[PREFIX + name] for name in AMOUNTS if PREFIX + name in self._set}

    @property
    def offer(self) -> Offer:
        """What is offered."""
        return replace(make_offer(self.amounts), fresh=self._is_on(FRESH))

    @property
    def margins(self) -> bool:
        """Whether both ends are shown beside each number."""
        return self._is_on(MARGINS)

    def _is_on(self, switch: str) -> bool:
        return self._set.get(PREFIX + switch) == "on"

    @property
    def confidence(self) -> str:
        """How surely margins hold."""
        return self.amounts.get("confidence", "0.95")

    @property
    def notices(self) -> bool:
        """Whether the client wants to be told prices and margins."""
        level = self._set.get("client_min_messages", "notice").lower()
        return level not in ("warning", "error", "fatal", "panic")

    def show(self, name: str) -> str | None:
        """A setting as it is; None if it is not ours to say."""
        name = _spell(name)
        if name in _FIXED:
            return _FIXED[name][0]
        if name.startswith(PREFIX):
            self._check_known(name)
            return self._set.get(name, "off" if name.removeprefix(PREFIX) in _SWITCHES else "")
        return self._set.get(name, _IGNORED.get(name))

    # --- setting ------------------------------------------------------------------------------

    def assign(self, name: str, value: str | None, *, local: bool = False) -> None:
        """Set a setting, or put it back (None)."""
        name = _spell(name)
        if local and self._before is None:
            return  # there is nothing that it could be local to
        if local:
            self._local.setdefault(name, self._set.get(name))
        if name.startswith(PREFIX):
            self._offer(name, value)
        elif name in _FIXED:
            if value is not None and value.strip("'").lower() not in _FIXED[name][1]:
                raise Said("22023", f"{name} is {_FIXED[name][0]} here, and nothing else.")
        elif name in _IGNORED:
            self._put(name, value)
        else:
            raise QuestionRefusal(
                "Q28",
                f"the setting {name[:63]!r} cannot be set here.",
                why="a setting that is not understood could change what an answer means.",
                fix="set discreet.epsilon, rho, delta, within, confidence, margins or fresh.",
            )

    def _check_known(self, name: str) -> None:
        if name.removeprefix(PREFIX) not in (*AMOUNTS, *_SWITCHES):
            raise QuestionRefusal(
                "Q28",
                "discreet.balance is what is left, and is not set."
                if name == BALANCE
                else f"there is no setting {name[:63]!r}.",
                why="an offer that is not understood could pay more than was meant.",
                fix="set discreet.epsilon, rho, delta, within, confidence, margins or fresh; "
                "SHOW discreet.balance says what is left.",
            )

    def _offer(self, name: str, value: str | None) -> None:
        self._check_known(name)
        amount = name.removeprefix(PREFIX)
        if amount in _SWITCHES:
            self._put(name, None if value is None else _switch(amount, value))
            return
        if value is not None and value.strip():
            _check_amount(amount, value)  # refused now if it is none
            for other in _ALONE:
                if amount in _ALONE and other != amount:
                    self._set.pop(PREFIX + other, None)
            self._set[name] = value.strip()
        elif value is None:
            self._put(name, None)
        else:
            self._set.pop(name, None)

    def _put(self, name: str, value: str | None) -> None:
        if value is None:
            value = self._defaults.get(name)
        if value is None:
            self._set.pop(name, None)
        else:
            self._set[name] = value

    def reset(self) -> None:
        """Put everything back."""
        self._set = dict(self._defaults)

    # --- transactions -------------------------------------------------------------------------

    def begin(self) -> None:
        """A transaction begins."""
        self._before, self._local = dict(self._set), {}

    def end(self, *, committed: bool) -> None:
        """It ends: what was set in it stays, if it was committed and not local."""
        if self._before is None:
            return
        if not committed:
            self._set = self._before
        for name, value in self._local.items() if committed else ():
            if value is None:
                self._set.pop(name, None)
            else:
                self._set[name] = value
        self._before, self._local = None, {}


def _spell(name: str) -> str:
    return " ".join(name.lower().split())


def _check_amount(name: str, value: str) -> None:
    """Refuse what is no amount, in the words of SQL.

    >>> _check_amount("epsilon", "0,25")
    Traceback (most recent call last):
    discreet.errors.InvalidParameter: P1: epsilon must be a finite number, got '0,25'.
    Why: a guarantee is computed from exact numbers, and this is not one.
    Fix: write it as '0.25': SET discreet.epsilon = '0.25'.
    """
    try:
        make_offer({name: value})
    except InvalidParameter as refusal:
        meant = re.sub(r"(?<=\d),\s*(?=\d)", ".", value.strip())
        try:
            make_offer({name: meant})
        except InvalidParameter:
            meant = _EXAMPLES[name]
        fix = f"write it as '{meant}': SET discreet.{name} = '{meant}'."
        raise InvalidParameter(refusal.code, refusal.what, why=refusal.why, fix=fix) from None


def _switch(name: str, value: str) -> str:
    said = value.strip().lower()
    if said not in (*_ON, *_OFF):
        raise InvalidParameter(
            "P2",
            f"discreet.{name} is neither on nor off.",
            why="no person's data is involved.",
            fix=f"SET discreet.{name} = on.",
        )
    return "on" if said in _ON else "off"


def read_assignment(tokens: list[Token]) -> tuple[str, str | None, bool] | None:
    """The name, the value and whether it is local, of ``SET ...``; None if it sets no variable.

    >>> from discreet.server.postgres.tokens import tokenize
    >>> read_assignment(tokenize("SET LOCAL discreet.epsilon TO '0.1'"))
    ('discreet.epsilon', '0.1', True)
    """
    rest = tokens[1:]
    local = bool(rest) and rest[0].says("LOCAL")
    if rest and rest[0].says("LOCAL", "SESSION"):
        rest = rest[1:]
    if len(rest) >= 3 and rest[0].says("TIME") and rest[1].says("ZONE"):
        return "timezone", _value(rest[2:]), local
    if len(rest) >= 2 and rest[0].says("NAMES"):
        return "client_encoding", _value(rest[1:]), local
    at = next((i for i, t in enumerate(rest) if t.text == "=" or t.says("TO")), None)
    if at is None or at == 0 or at + 1 >= len(rest):
        return None
    name = "".join(unquote(token) for token in rest[:at])
    return name, _value(rest[at + 1 :]), local


def _value(tokens: list[Token]) -> str | None:
    if len(tokens) == 1 and tokens[0].says("DEFAULT"):
        return None
    if any(token.part in (Part.ESCAPED, Part.PARAMETER) for token in tokens):
        raise Said("42601", "write the value of a setting as '...'.")
    if tokens[0].text in ("-", "+"):
        return "".join(unquote(token) for token in tokens)
    return " ".join(unquote(token) for token in tokens).replace(" ,", ",")


def read_options(text: str) -> list[tuple[str, str]]:
    """The settings of the start-up parameter ``options``.

    >>> read_options("-c discreet.epsilon=0.1 --discreet.delta=1e-9 -cjit=off")
    [('discreet.epsilon', '0.1'), ('discreet.delta', '1e-9'), ('jit', 'off')]
    """
    words: list[str] = [""]
    escaped = False
    for character in text:
        if escaped:
            words[-1] += character
            escaped = False
        elif character == "\\":
            escaped = True
        elif character.isspace():
            words.append("")
        else:
            words[-1] += character
    found: list[tuple[str, str]] = []
    waiting = False
    for word in filter(None, words):
        if word == "-c" and not waiting:
            waiting = True
            continue
        setting = word if waiting else word.removeprefix("--" if word[:2] == "--" else "-c")
        name, equals, value = setting.partition("=")
        if not equals or (setting == word and not waiting):
            raise Said("22023", "the options of the connection cannot be read.")
        found.append((name.replace("-", "_"), value))
        waiting = False
    if waiting:
        raise Said("22023", "the options of the connection cannot be read.")
    return found
