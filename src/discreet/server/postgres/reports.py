"""Refusals as PostgreSQL's clients show them: ERROR with a caret, DETAIL, HINT, SQLSTATE.

The SQLSTATE of a refusal is Z, the letter of its family and its number in three
digits: Q43 is ZQ043, B1 is ZB001.  Classes from Z are nobody's in the standard, so
no client takes one for something else.  What the protocol itself knows has the
standard's own: a failed log-in, a cancelled statement, a transaction that failed.
"""

from __future__ import annotations

from discreet.errors import AccessRefusal, QuestionRefusal, Refusal
from discreet.publication.told import Told
from discreet.release.answer import Answer
from discreet.release.display import number
from discreet.release.notes import VALUE
from discreet.server.postgres import wire

STANDARD = {"A10": "28P01", "A11": "28P01", "A19": "28000", "A17": "57P03"}
"""Codes that have a SQLSTATE of the standard's."""


def sqlstate(code: str) -> str:
    """The SQLSTATE of a code.

    >>> sqlstate("Q43"), sqlstate("B1"), sqlstate("A10")
    ('ZQ043', 'ZB001', '28P01')
    """
    return STANDARD.get(code) or f"Z{code[0]}{int(code[1:]):03d}"


class Said(Exception):
    """An error of the protocol's own, told with the standard's SQLSTATE."""

    def __init__(self, state: str, what: str, detail: str = "", hint: str = "") -> None:
        super().__init__(what)
        self.state = state
        self.what = what
        self.detail = detail
        self.hint = hint

    def report(self, severity: str = "ERROR") -> bytes:
        """The message."""
        parts = {"S": severity, "V": severity, "C": self.state, "M": self.what}
        return wire.report(b"E", {**parts, "D": self.detail, "H": self.hint})


def report_refusal(
    refusal: Refusal, *, position: int | None = None, severity: str = "ERROR"
) -> bytes:
    """A refusal; ``position`` is the place in the text that was sent, from 1."""
    told = refusal.translate("postgres")
    hint = told.fix
    if told.rewriting is not None and told.rewriting not in hint:
        hint = f"{hint}\n{told.rewriting}"
    parts = {"S": severity, "V": severity, "C": sqlstate(told.code)}
    parts |= {"M": f"{told.code}: {told.what}", "D": told.why, "H": hint}
    if position is not None:
        parts["P"] = str(position)
    return wire.report(b"E", parts)


def notice(what: str, detail: str = "") -> bytes:
    """A notice."""
    parts = {"S": "NOTICE", "V": "NOTICE", "C": "00000", "M": what, "D": detail}
    return wire.report(b"N", parts)


def notice_answer(answer: Answer | Told, confidence: str) -> bytes:
    """What an answer cost, how far off it may be, and its notes."""
    if isinstance(answer, Told):
        return _notice_told(answer, confidence)
    margins = answer.margins(confidence)
    units = answer.margin_units
    told = []
    for name, found in margins.items():
        known = [margin for margin in found if margin is not None]
        if known:
            unit = units[name]
            kind = "" if unit in (None, VALUE) else f" {unit}"
            least, most = number(min(known), up=True), number(max(known), up=True)
            spread = most if least == most else f"{least} to {most}"
            told.append(f"{name} ± {spread}{kind}")
    stated = f"; {', '.join(told)} (confidence {confidence})" if told else ""
    return notice(f"{answer.cost_words()}{stated}", "\n".join(answer.notes))


def _notice_told(told: Told, confidence: str) -> bytes:
    """That a release or a survey is asked for free, how far off it may be, and its notes."""
    stated = []
    for name, found in told.margins.items():
        known = [one.within for one in found if one.within is not None]
        if known:
            least, most = number(min(known), up=True), number(max(known), up=True)
            spread = most if least == most else f"{least} to {most}"
            stated.append(f"{name} ± {spread}, {told.margin_kinds[name]}")
    margins = f"; {'; '.join(stated)} (confidence {confidence})" if stated else ""
    return notice(f"free{margins}", "\n".join(told.notes))


def not_a_question(word: str) -> QuestionRefusal:
    """What is said to every command."""
    return QuestionRefusal(
        "Q5",
        f"{word} is not a question." if word else "this is not a question.",
        why="this door answers questions about people, and changes nothing.",
        fix="ask with SELECT; settings such as SET discreet.epsilon = '0.1' say what it may cost.",
    )


def refuse_plaintext() -> AccessRefusal:
    """What is said to a client that does not encrypt."""
    return AccessRefusal(
        "A19",
        "this server is spoken to over TLS only.",
        why="whoever reads a question or an answer on the way is one more who knows it.",
        fix="connect with sslmode=require, or better verify-full.",
    )


def refuse_key() -> Said:
    """What is said to everybody whose proof fails, whatever the reason."""
    return Said(
        "28P01",
        "A10: no key was proved, or none that opens anything here.",
        "what has been lost about the people in the data is counted for each who asks.",
        "give the dataset as the database, your name (or the key's public part) as the user and "
        "the key as the password. A key made by an earlier version opens this door when it has "
        "been renewed: POST /v1/me/key, or a new key from the curator.",
    )
