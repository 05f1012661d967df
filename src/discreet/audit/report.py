"""What an auditor files: every check with its verdict, as one JSON value and one HTML page.

The page is one file without scripts and without a request to anywhere.  It is
read on light and on dark paper, and on real paper.
"""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from html import escape
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from discreet.accounting.loss import Loss
from discreet.audit.exact import Exact
from discreet.audit.fit import Fit
from discreet.audit.game import Game
from discreet.audit.installation import ALPHA, GAMES, LAWS, PURPOSE, Done
from discreet.audit.timing import Timing
from discreet.audit.verdict import Finding, Verdict
from discreet.audit.zoo import FALSE_ALARMS, Examined, Walk
from discreet.exact.numbers import canonical_json

FORMAT = 1
"""The version of the JSON's shape; what is recorded under it never changes its meaning."""

_PACKAGES = ("discreet", "numpy", "duckdb", "sqlglot", "python-flint", "pyarrow")


def environment() -> dict[str, str]:
    """What ran: this library, what it stands on, and where."""
    found = {"python": platform.python_version(), "system": platform.platform()}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed as a package"
    return found


@dataclass(frozen=True, slots=True)
class Report:
    """An audit that is over.

    ``subject`` is what was audited by ``checks``, and ``zoo`` the auditor's own test, if it was
    made; ``started`` and ``seconds`` say when and how long, ``quick`` whether in brief,
    ``environment`` with which versions.
    """

    subject: str
    checks: tuple[Done, ...]
    zoo: Walk | None
    started: datetime
    seconds: float
    quick: bool
    environment: Mapping[str, str]

    @property
    def broken(self) -> tuple[Done, ...]:
        """The promises that were found broken."""
        return tuple(one for one in self.checks if one.finding.alarm)

    @property
    def blind(self) -> bool:
        """Whether the auditor failed its own test: a known bug missed, or a twin accused."""
        return self.zoo is not None and bool(self.zoo.missed or self.zoo.false_alarms)

    @property
    def clean(self) -> bool:
        """Whether nothing was found, by an auditor that finds what it should."""
        return not self.broken and not self.blind

    @property
    def sentence(self) -> str:
        """The outcome in words."""
        tried = f"{len(self.checks)} checks of {self.subject}"
        if self.broken:
            return f"{tried}: {len(self.broken)} found a promise broken."
        if self.blind:
            return f"{tried}: nothing found, but the auditor failed its own test on known bugs."
        open_ = self.count(Verdict.UNDECIDED)
        rest = f" {open_} came to no conclusion." if open_ else ""
        return f"{tried}: no promise was found broken.{rest}"

    def count(self, verdict: Verdict) -> int:
        """How many checks ended with this ``verdict``."""
        return sum(one.finding.verdict is verdict for one in self.checks)

    def to_json(self) -> dict[str, Any]:
        """Everything as plain JSON; ``digest`` is the SHA-256 of the rest, keys in order."""
        body = {
            "format": FORMAT,
            "subject": self.subject,
            "clean": self.clean,
            "sentence": self.sentence,
            "started": self.started.isoformat(timespec="seconds"),
            "seconds": round(self.seconds, 1),
            "quick": self.quick,
            "environment": dict(self.environment),
            "false_alarm_rate": {"each": str(ALPHA), "zoo": str(FALSE_ALARMS)},
            "checks": [_check_json(one) for one in self.checks],
            "zoo": None if self.zoo is None else self.zoo.to_json(),
        }
        return {**body, "digest": digest(body)}

    def to_html(self) -> str:
        """The same for people: one page, no script, no request."""
        return _page(self)


def digest(body: Mapping[str, Any]) -> str:
    """SHA-256 of ``body`` as canonical JSON: keys in order, no spaces."""
    return hashlib.sha256(canonical_json(body).encode()).hexdigest()


def share(finding: Finding) -> float | None:
    """How much a ``finding`` saw of what is allowed: 1 is the promise; None if it is no number."""
    match finding:
        case Exact(promised=Loss() as promised):
            if promised.delta and isinstance(promised.epsilon, float) is False:
                return float(finding.delta_at(promised.epsilon)[1] / promised.delta)
            if isinstance(promised.epsilon, float):
                return float(finding.rho[1] / promised.rho)
            return float(finding.epsilon[1] / promised.epsilon) if promised.epsilon else None
        case Game():
            promise = finding.promised_epsilon
            return float(finding.lower / promise) if promise else None
        case Fit(distance=distance, allowed=allowed):
            return distance / allowed
        case Timing(statistic=statistic, allowed=allowed):
            return abs(statistic) / allowed
    return None


def _check_json(one: Done) -> dict[str, Any]:
    seen = share(one.finding)
    return {
        "part": one.part,
        "subject": one.subject,
        "seconds": round(one.seconds, 3),
        "share": None if seen is None or seen == float("inf") else round(seen, 6),
        **one.finding.to_json(),
    }


# --- the page -------------------------------------------------------------------------------

_MEANING = {
    Verdict.PROVED: "computed from the exact law of this pair of neighbours; no chance involved",
    Verdict.CONSISTENT: "a breach was looked for and none was found; that is no proof",
    Verdict.UNDECIDED: "nothing could be concluded",
    Verdict.BROKEN: "something happened that the promise excludes",
}

_STYLE = """
:root{color-scheme:light dark;--paper:#fff;--ink:#1d1d1f;--soft:#55585d;--rule:#d9dce1;
--card:#f5f6f8;--good:#00785a;--fair:#0b62a4;--poor:#8a5a00;--bad:#b3261e}
@media (prefers-color-scheme:dark){:root{--paper:#16181c;--ink:#f1f2f4;--soft:#b4b8bf;
--rule:#33373e;--card:#1f2228;--good:#4fd0a5;--fair:#6db7ee;--poor:#f0c04f;--bad:#ff8a80}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:68rem;padding:2rem 1.25rem 4rem;background:var(--paper);
color:var(--ink);font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
h1{font-size:1.7rem;line-height:1.2;margin:0 0 .3rem}h2{font-size:1.2rem;margin:2.6rem 0 .2rem}
p{margin:.4rem 0}.soft{color:var(--soft)}code{font:.86em ui-monospace,Menlo,Consolas,monospace;
overflow-wrap:anywhere}
.banner{border-left:.5rem solid var(--good);background:var(--card);padding:1rem 1.2rem;
margin:1.4rem 0;border-radius:.3rem;font-size:1.15rem;font-weight:600}
.banner.bad{border-color:var(--bad)}.banner p{font-size:.95rem;font-weight:400;margin:.3rem 0 0}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(9.5rem,1fr));gap:.8rem;padding:0}
.cards li{list-style:none;background:var(--card);border-radius:.3rem;padding:.7rem .9rem}
.cards b{display:block;font-size:1.6rem;line-height:1.2;font-variant-numeric:tabular-nums}
table{border-collapse:collapse;width:100%;margin:.8rem 0;font-size:.9rem}
th,td{text-align:left;vertical-align:top;padding:.4rem .6rem;border-bottom:1px solid var(--rule)}
th{color:var(--soft);font-weight:600}tr{break-inside:avoid}
thead{display:table-header-group}
.v{white-space:nowrap;font-weight:600}.proved{color:var(--good)}.consistent{color:var(--fair)}
.undecided{color:var(--poor)}.broken{color:var(--bad)}
.bar{width:7rem;height:.75rem;display:block;margin-top:.25rem}
.bar .t{fill:var(--rule)}.bar .f{fill:var(--fair)}.bar .p{fill:var(--good)}.bar .b{fill:var(--bad)}
.n{white-space:nowrap;font-variant-numeric:tabular-nums;font-size:.85em;color:var(--soft)}
.figures{display:grid;grid-template-columns:repeat(auto-fill,minmax(24rem,1fr));gap:1rem}
figure{margin:0;break-inside:avoid;border:1px solid var(--rule);border-radius:.3rem;padding:.4rem}
figure svg{width:100%;height:auto;display:block}
summary{cursor:pointer;color:var(--soft);margin:.6rem 0}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.15rem 1rem;font-size:.9rem}
dt{color:var(--soft)}dd{margin:0;overflow-wrap:anywhere}
@media (max-width:40rem){.figures{grid-template-columns:1fr}table{font-size:.82rem}
th,td{padding:.35rem .3rem}.bar{width:4rem}}
@page{margin:16mm}
@media print{:root{--paper:#fff;--ink:#000;--soft:#444;--rule:#bbb;--card:#f2f2f2;--good:#00513c;
--fair:#0b4a7a;--poor:#6b4600;--bad:#8c1d18}body{max-width:none;padding:0;font-size:10.5pt}
.banner,.cards li,.bar{print-color-adjust:exact;-webkit-print-color-adjust:exact}
details:not([open]){display:none}.figures{grid-template-columns:1fr 1fr}h2,h2+p{break-after:avoid}
table{font-size:8.5pt;line-height:1.35}th,td{padding:.25rem .4rem}.bar{width:4.5rem;height:.55rem}
.cards{grid-template-columns:repeat(5,1fr);font-size:8.5pt}}
"""


def _page(report: Report) -> str:
    title = f"Privacy audit of {report.subject}"
    parts = "".join(_part(name, report.checks) for name in PURPOSE)
    zoo = "" if report.zoo is None else _zoo(report.zoo)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        '<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>"
        f"<header><h1>{escape(title)}</h1>"
        f'<p class="soft">{report.started:%d %B %Y, %H:%M} UTC, {report.seconds:.0f} seconds'
        f"{', the quick form' if report.quick else ''}. "
        f"discreet {escape(report.environment['discreet'])}.</p></header>"
        f"<main>{_banner(report)}{_cards(report)}{_legend()}{parts}{zoo}{_limits()}</main>"
        f"{_colophon(report)}</body></html>\n"
    )


def _banner(report: Report) -> str:
    kind = "banner" if report.clean else "banner bad"
    more = "".join(f"<p>{escape(one.finding.sentence)}</p>" for one in report.broken)
    return f'<div class="{kind}" role="status">{escape(report.sentence)}{more}</div>'


def _cards(report: Report) -> str:
    numbers: list[tuple[object, str]] = [
        (report.count(Verdict.PROVED), "promises proved kept, on their worst pair known"),
        (report.count(Verdict.CONSISTENT), "checks that looked for a breach and found none"),
        (len(report.broken), "promises found broken"),
    ]
    if report.count(Verdict.UNDECIDED):
        numbers.append((report.count(Verdict.UNDECIDED), "checks without a conclusion"))
    if report.zoo is not None:
        found = len(report.zoo.examined) - len(report.zoo.missed)
        numbers.append((f"{found} / {len(report.zoo.examined)}", "known bugs that it finds"))
        numbers.append((len(report.zoo.false_alarms), "alarms on their correct twins"))
    items = "".join(f"<li><b>{number}</b> {escape(text)}</li>" for number, text in numbers)
    return f'<ul class="cards">{items}</ul>'


def _legend() -> str:
    rows = "".join(
        f'<tr><td class="v {verdict.value}">{verdict.value}</td><td>{escape(text)}</td></tr>'
        for verdict, text in _MEANING.items()
    )
    return (
        "<h2>How to read it</h2><table><tbody>"
        f"{rows}</tbody></table>"
        '<p class="soft">A bar shows how much was seen of what is allowed. A full bar is the '
        "promise itself: a computed law may reach it and a statistic may come near; only what "
        "goes beyond is a breach.</p>"
    )


def _part(name: str, checks: Iterable[Done]) -> str:
    mine = [one for one in checks if one.part == name]
    if not mine:
        return ""
    rows = "".join(_row(one) for one in mine)
    return (
        f"<section><h2>{escape(name[0].upper() + name[1:])}</h2>"
        f'<p class="soft">{escape(PURPOSE[name])}</p>'
        "<table><thead><tr><th>verdict</th><th>subject</th><th>share of what is allowed</th>"
        f"<th>conclusion</th></tr></thead><tbody>{rows}</tbody></table>"
        f"{_figures(name, mine)}</section>"
    )


def _row(one: Done) -> str:
    finding = one.finding
    words = finding.sentence.removeprefix(one.subject).lstrip(": ")
    return (
        f'<tr><td class="v {finding.verdict.value}">{finding.verdict.value}</td>'
        f"<td><code>{escape(one.subject)}</code></td><td>{_bar(finding)}</td>"
        f"<td>{escape(words)}</td></tr>"
    )


def _bar(finding: Finding) -> str:
    """A track, and how much of it is filled; the picture says in words what it shows."""
    seen = share(finding)
    if seen is None:
        return '<span class="n">–</span>'
    # Rounded: a certified bound lies a hair above what it encloses.
    text = "∞" if seen == float("inf") else f"{100 * seen:.3g} %"
    kind = "b" if finding.alarm else "p" if finding.verdict is Verdict.PROVED else "f"
    filled = min(max(seen, 0.0), 1.0) * 100
    return (
        f'<span class="n">{text}</span>'
        f'<svg class="bar" viewBox="0 0 100 10" preserveAspectRatio="none" role="img" '
        f'aria-label="{text} of what is allowed"><rect class="t" width="100" height="10"/>'
        f'<rect class="{kind}" width="{filled:.1f}" height="10"/></svg>'
    )


def _figures(name: str, checks: Iterable[Done]) -> str:
    """The pictures of laws in the open; those of games, which are many and alike, folded."""
    drawn = [(one, one.finding.picture()) for one in checks if name in (LAWS, GAMES)]
    loud = [picture for one, picture in drawn if picture and (name == LAWS or one.finding.alarm)]
    calm = [picture for one, picture in drawn if picture and picture not in loud]
    opened = f'<div class="figures">{_frame(loud)}</div>' if loud else ""
    folded = (
        f'<details><summary>{len(calm)} pictures</summary><div class="figures">{_frame(calm)}'
        "</div></details>"
        if calm
        else ""
    )
    return opened + folded


def _frame(pictures: Iterable[str]) -> str:
    return "".join(f"<figure>{picture}</figure>" for picture in pictures)


def _zoo(walk: Walk) -> str:
    rows = "".join(_specimen(one) for one in walk.examined)
    return (
        "<section><h2>The auditor itself</h2>"
        '<p class="soft">Silence is worth something only if bugs would have been heard. These are '
        "known bugs, each beside its correct twin and with its source. "
        f"{escape(walk.sentence)} The chance of any alarm on a twin is at most "
        f"{float(FALSE_ALARMS):g}, with up to {walk.samples:,} samples in either world.</p>"
        "<table><thead><tr><th>bug</th><th>what is wrong</th><th>found by</th><th>bug</th>"
        f"<th>twin</th></tr></thead><tbody>{rows}</tbody></table></section>"
    )


def _specimen(one: Examined) -> str:
    animal = one.animal
    found = ("proved", "found") if one.found else ("broken", "missed")
    twin = ("broken", "accused") if one.false_alarm else ("proved", "passed")
    return (
        f"<tr><td>{escape(animal.name)}</td>"
        f'<td>{escape(animal.bug)}<br><span class="soft">{escape(animal.source)}</span></td>'
        f"<td>{animal.check.value}</td>"
        f'<td class="v {found[0]}">{found[1]}</td><td class="v {twin[0]}">{twin[1]}</td></tr>'
    )


def _limits() -> str:
    points = (
        "A proof is about the pair of neighbours it names, the worst one known; that no other "
        "pair is worse is a matter of the mechanism's own proof.",
        f"A statistical check accuses what is right with probability at most {float(ALPHA):g}, "
        "and misses what its number of samples cannot show.",
        "Questions are tried on made-up people. The real tables are not read.",
        "What leaves by other ways than answers, refusals and their time (the host, its backups, "
        "its operators) is outside this audit.",
    )
    items = "".join(f"<li>{escape(point)}</li>" for point in points)
    return f"<section><h2>What this does not say</h2><ul>{items}</ul></section>"


def _colophon(report: Report) -> str:
    rows = "".join(
        f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>"
        for name, text in report.environment.items()
    )
    return (
        f"<footer><h2>What ran</h2><dl>{rows}<dt>digest</dt>"
        f"<dd><code>{report.to_json()['digest']}</code></dd></dl>"
        '<p class="soft">The digest is the SHA-256 of this report as JSON, without the digest, '
        "with its keys in order and no spaces.</p></footer>"
    )


__all__ = ["FORMAT", "Report", "digest", "environment", "share"]
