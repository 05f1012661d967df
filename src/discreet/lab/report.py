"""The lab's report: one file, no script, no request, light or dark, legible in print."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from typing import Any

from discreet.charts import Picture
from discreet.lab.chapters import Chapter, Seen
from discreet.lab.outcome import Outcome

_STYLE = """
:root { color-scheme: light dark; --paper: #fff; --ink: #1d1d1f; --soft: #55585d; --rule: #e2e4e8;
  --bad: #a3190b; --good: #00654c; }
@media (prefers-color-scheme: dark) { :root { --paper: #16181c; --ink: #f1f2f4; --soft: #b4b8bf;
  --rule: #33373e; --bad: #ff9a8a; --good: #4fd0a5; } }
body { margin: 0 auto; max-width: 60rem; padding: 1.5rem 1rem 4rem; background: var(--paper);
  color: var(--ink); font: 16px/1.55 system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif; }
h1 { font-size: 1.7rem; margin: 0 0 .3rem } h2 { font-size: 1.25rem; margin: 2.5rem 0 .3rem }
p { max-width: 42rem } .soft { color: var(--soft) }
.wide { overflow-x: auto } table { border-collapse: collapse; width: 100% }
th, td { text-align: left; padding: .3rem .6rem .3rem 0; border-bottom: 1px solid var(--rule);
  vertical-align: top }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums }
.bad { color: var(--bad); font-weight: 600 } .good { color: var(--good); font-weight: 600 }
@media (max-width: 34rem) { body { font-size: 15px } h2 { margin-top: 2rem }
  th, td { font-size: .85rem; padding-right: .4rem; border: 0 }
  tr { display: grid; grid-template-columns: 1.5rem 1fr 3.9rem 3.3rem 3.4rem;
    border-bottom: 1px solid var(--rule) }
  th.against { display: none }
  td.against { grid-row: 2; grid-column: 2 / 6; padding-top: 0; color: var(--soft) } }
.pictures { display: grid; gap: 0 1.5rem; align-items: end;
  grid-template-columns: repeat(auto-fill, minmax(min(100%, 26rem), 1fr)) }
figure { margin: 1rem 0; max-width: 30rem; min-width: 0 } figcaption { font-weight: 600 }
figcaption small { font-weight: 400 } figure svg { width: 100%; height: auto }
.dark { display: none }
@media (prefers-color-scheme: dark) { .dark { display: block } .light { display: none } }
@media print { .dark { display: none } .light { display: block } }
"""


@dataclass(frozen=True, slots=True)
class Report:
    """What was run, what was seen, and how long it took."""

    chapters: tuple[tuple[Chapter, Seen, float], ...]
    started: datetime
    warning: str = ""
    """Who may read it, if not everybody."""

    @property
    def kept(self) -> bool:
        """Whether every attack on ours stayed below what ε allows."""
        return all(
            one.within for _, seen, _ in self.chapters for one in seen.outcomes if _ours(one)
        )

    def to_json(self) -> dict[str, Any]:
        """Every figure, for programs."""
        return {
            "started": self.started.isoformat(timespec="seconds"),
            "kept": self.kept,
            "warning": self.warning,
            "chapters": [
                {
                    "name": chapter.name,
                    "title": chapter.title,
                    "seconds": round(took, 2),
                    "outcomes": [one.to_json() for one in seen.outcomes],
                    "figures": list(seen.figures),
                    "pictures": [dict(picture.spec) for picture in seen.pictures],
                }
                for chapter, seen, took in self.chapters
            ],
        }

    def to_html(self) -> str:
        """The page."""
        body = "".join(_chapter(*part) for part in self.chapters)
        warning = f'<p class="bad">{escape(self.warning)}</p>' if self.warning else ""
        took = sum(took for _, _, took in self.chapters)
        return (
            '<!doctype html><html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<title>The lab</title><style>{_STYLE}</style></head><body><main>"
            "<h1>The lab: attacks that justify the noise</h1>"
            "<p>Each attack is run against a system as it is found in practice, and then against "
            "discreet on the same data. <em>A guess</em> is how often anybody is right without "
            "looking; <em>ε allows</em> is the most that the best attacker can reach against what "
            "was promised. Each share is of a few dozen tries or more, so chance may put one a "
            "little above what is allowed; one that is too far above for chance is red.</p>"
            f"{warning}"
            f'<p class="soft">Run {self.started:%Y-%m-%d %H:%M} UTC, {took:.0f} s.</p>'
            f"{body}</main></body></html>\n"
        )


def run_chapters(
    chapters: Sequence[Chapter],
    *,
    advance: Callable[[str, int], None] = lambda *_: None,
    warning: str = "",
) -> Report:
    """Run them one after the other; ``advance`` is told of each when it starts and when it is done.

    First with none done, then with one.
    """
    started, parts = datetime.now(UTC), []
    for chapter in chapters:
        advance(chapter.title, 0)
        began = time.perf_counter()
        seen = chapter.run()
        parts.append((chapter, seen, time.perf_counter() - began))
        advance(chapter.title, 1)
    return Report(tuple(parts), started, warning)


def _ours(one: Outcome) -> bool:
    return one.target.startswith("discreet")


def _chapter(chapter: Chapter, seen: Seen, took: float) -> str:
    title, story = escape(chapter.title), escape(chapter.story)
    parts = [f'<section id="{chapter.name}"><h2>{title}</h2><p>{story}</p>']
    if seen.outcomes:
        head = '<th class="n">#</th><th>attack</th><th class="against">against</th>' + "".join(
            f'<th class="n">{title}</th>' for title in ("right", "a guess", "ε allows")
        )
        rows = "".join(_row(*one) for one in enumerate(seen.outcomes, 1))
        parts.append(
            f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody>'
            "</table></div>"
        )
    parts += [f"<p>{escape(figure[0].upper() + figure[1:])}.</p>" for figure in seen.figures]
    parts.append('<div class="pictures">')
    for picture in seen.pictures:
        drawn, about = draw_narrow(picture), picture.spec["title"].get("subtitle", "")
        soft = f'<br><small class="soft">{escape(str(about))}</small>' if about else ""
        parts.append(
            f"<figure><figcaption>{escape(picture.title)}{soft}</figcaption>"
            f'<div class="light">{drawn.svg()}</div>'
            f'<div class="dark">{drawn.svg(paper="dark")}</div></figure>'
        )
    parts.append(f'</div><p class="soft">{took:.1f} s</p></section>')
    return "".join(parts)


def draw_narrow(picture: Picture) -> Picture:
    """As wide as a telephone: its letters can be read there, and wider paper enlarges it."""
    rest = {name: part for name, part in picture.spec.items() if name != "title"}
    return Picture({**rest, "width": 270, "height": 180})


def _row(number: int, one: Outcome) -> str:
    allowed = "" if one.bound is None else f"{one.bound:.1%}"
    worse = one.success > one.baseline + 4.5 * one.spread and not _ours(one)
    kept = _ours(one) and one.bound is not None
    shade = "bad" if worse or not one.within else "good" if kept else ""
    remark = f'<br><small class="soft">{escape(one.remark)}</small>' if one.remark else ""
    return (
        f'<tr><td class="n">{number}</td>'
        f'<td>{escape(one.attack)}</td><td class="against">{escape(one.target)}{remark}</td>'
        f'<td class="n {shade}">{one.success:.1%}</td><td class="n">{one.baseline:.1%}</td>'
        f'<td class="n">{allowed}</td></tr>'
    )


__all__ = ["Report", "draw_narrow", "run_chapters"]
