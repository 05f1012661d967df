"""The pages of a survey: one to answer on, one with results; each a single file."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import math
from collections.abc import Sequence
from fractions import Fraction
from importlib.resources import files
from urllib.parse import urlsplit

from discreet.errors import InvalidParameter
from discreet.local.shown import write_range
from discreet.local.survey import Result, Survey

_WEAK = 5
"""Beyond this epsilon a report can make somebody surer than 99 % of an answer: it is said so."""
_STATIC = files("discreet.local") / "static"


def answer_page(survey: Survey, *, endpoint: str = "report") -> str:
    """The page on which a respondent answers; ``endpoint`` is where the report is sent.

    The page runs its own script and no other, and can send to the endpoint alone: its policy
    names the script and the style by their hashes.
    """
    shown = {**survey.to_json(), "fingerprint": survey.fingerprint, "endpoint": endpoint}
    script = _text("randomize.js") + _text("page.js")
    style = _text("page.css")
    # "<" would end the element that holds the JSON.
    written = json.dumps(shown, ensure_ascii=False).replace("<", "\\u003c")
    return _fill(
        _text("page.html"),
        title=html.escape(survey.title),
        policy=html.escape(policy(style, script, endpoint=endpoint)),
        fingerprint=survey.fingerprint[:16],
        promise=html.escape(describe_promise(survey.epsilon)),
        weak=' class="warning"' if survey.epsilon > _WEAK else "",
        style=style,
        script=script,
        survey=written,
    )


def describe_promise(epsilon: Fraction) -> str:
    """What a report could ever tell, in words for those who give it; rounded up.

    >>> describe_promise(Fraction(3))[:-1].split(": ")[1]
    'somebody who thought them equally likely may become up to 95.3 % sure of one (ε = 3)'
    >>> "very little protection" in describe_promise(Fraction(20))
    True
    """
    odds = math.exp(float(epsilon))
    share = min(math.ceil(1000 * odds / (1 + odds) * (1 - 1e-12)) / 10, 100.0)
    said = (
        "What is sent could still tell something about two answers that you might have given: "
        f"somebody who thought them equally likely may become up to {share:g} % sure of one "
        f"(ε = {epsilon})."
    )
    if epsilon <= _WEAK:
        return said
    return f"{said} That is very little protection: the report may nearly say what you answered."


def policy(style: str, script: str = "", *, endpoint: str | None = None) -> str:
    """The Content-Security-Policy of a page with this style and this script."""
    parts = ["default-src 'none'", f"style-src {_hash(style)}", "img-src data:"]
    if script:
        parts.append(f"script-src {_hash(script)}")
    if endpoint is not None:
        parts.append(f"connect-src {_origin(endpoint)}")
    return "; ".join([*parts, "base-uri 'none'", "form-action 'none'"])


def _origin(endpoint: str) -> str:
    found = urlsplit(endpoint)
    plain = all(one.isalnum() or one in "-._~:/[]" for one in endpoint)
    if (
        not plain
        or found.scheme not in ("", "http", "https")
        or bool(found.scheme) != bool(found.netloc)
    ):
        raise InvalidParameter(
            "P4",
            "the address of reports must be one of a web server, without a query.",
            why="a page that could send elsewhere could send anything there.",
            fix="--address https://survey.example.org",
        )
    return f"{found.scheme}://{found.netloc}" if found.scheme else "'self'"


def results_page(survey: Survey, results: Sequence[Result]) -> str:
    """The results as one page without a script: numbers, margins and bars."""
    style = _text("page.css")
    people = results[0].respondents if results else 0
    parts = [
        f"<h1>{html.escape(survey.title)}</h1>",
        f"<p>{people:,} reports; each respondent lost at most ε = {survey.epsilon}. "
        "Numbers are estimates from randomised reports, and no facts: each range holds the truth "
        "95 times in 100, whatever it is. An estimate below 0, or of a mean beyond its bounds, is "
        "shown as the nearest number that can be true.</p>",
    ]
    for result in results:
        parts.append(f"<h2>{html.escape(result.question.text)}</h2>")
        parts.append(_mean(result) if result.question.lower is not None else _counts(result))
    body = "\n".join(parts)
    rules = html.escape(policy(style))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f'<meta http-equiv="Content-Security-Policy" content="{rules}">'
        f'<title>{html.escape(survey.title)}</title><link rel="icon" href="data:,">'
        f"<style>{style}</style></head>\n<body><main>{body}</main></body></html>\n"
    )


def _counts(result: Result) -> str:
    people = max(result.respondents, 1)
    rows = []
    for name, one in result.lines:
        value, low, high = (
            100 * min(max(number / people, 0.0), 1.0) for number in (one.value, one.low, one.high)
        )
        label = f"{value:.1f} %, between {low:.1f} and {high:.1f} %"
        rows.append(
            f'<tr><th scope="row">{html.escape(name)}</th>'
            f'<td class="number">{value:.1f} %</td>'
            f'<td class="number">{low:.1f} – {high:.1f} %</td></tr>'
            f'<tr><td colspan="3">{_bar(value, low, high, label)}</td></tr>'
        )
    head = (
        '<tr><th>Answer</th><th class="number">Estimate</th><th class="number">95 % range</th></tr>'
    )
    return f"<table><thead>{head}</thead><tbody>{''.join(rows)}</tbody></table>"


def _mean(result: Result) -> str:
    if not result.lines:
        return "<p>No reports yet.</p>"
    _, one = result.lines[0]
    least, most = float(result.question.lower or 0), float(result.question.upper or 0)
    value, low, high = (
        100 * min(max((number - least) / (most - least), 0.0), 1.0)
        for number in (one.value, one.low, one.high)
    )
    possible = min(max(one.value, least), most)
    said = "{}, between {} and {}".format(*write_range(possible, one.low, one.high))
    ends = f"{least:,.10g} to {most:,.10g}"
    bar = _bar(value, low, high, f"Mean {said}, of {ends}")
    return f"<p>Mean {said}.</p>{bar}<p>The bar goes from {ends}.</p>"


def _bar(value: float, low: float, high: float, label: str) -> str:
    """A bar of so many percent, and a line over its range."""
    return (
        '<svg viewBox="0 0 100 10" preserveAspectRatio="none" role="img" '
        f'aria-label="{label}"><rect class="bar" x="0" y="1" width="{value:.2f}" height="8"/>'
        f'<line class="margin" x1="{low:.2f}" x2="{high:.2f}" y1="5" y2="5" '
        'vector-effect="non-scaling-stroke"/></svg>'
    )


def _fill(text: str, **parts: str) -> str:
    # One pass: what is put in is never looked at again.
    pieces = text.split("{{")
    out = [pieces[0]]
    for piece in pieces[1:]:
        name, _, rest = piece.partition("}}")
        out += [parts[name], rest]
    return "".join(out)


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def _text(name: str) -> str:
    return (_STATIC / name).read_text(encoding="utf-8")


__all__ = ["answer_page", "policy", "results_page"]
