"""Write the notebooks of the lab anew, each run in a real kernel: ``python examples/lab/make.py``.

A notebook for each chapter: its story, its attacks on few people, its picture, and what to try.
The pictures that the server's page shows under "What ε means" are written, too.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from discreet.lab.chapters import CHAPTERS, Chapter, find_chapter
from discreet.lab.report import draw_narrow

FOLDER = Path(__file__).parent
STATIC = FOLDER.parents[1] / "src" / "discreet" / "server" / "static"
PICTURED = ("reconstruct", "trace", "separate")
"""The chapters whose first picture the page shows."""
PICTURE = "\nSVG(picture.svg())"
TRY_OUT = (
    "from IPython.display import SVG\n\n"
    "from discreet.lab.chapters import try_out\nfrom discreet.lab.outcome import compare\n"
    "from discreet.lab.town import make_town\n\n"
    'found = try_out("{name}", make_town({people}))\n'
    "for one in found:\n    print(one)\n"
    'SVG(compare(found, "{title}").svg())'
)
"""The attacks of a chapter on anything with an ``ask``, and on ours."""
CODE: dict[str, tuple[str, ...]] = {
    "difference": (
        "from discreet.lab import differencing\n\n"
        "for found in differencing.run(people=100, tried=10):\n    print(found)",
    ),
    "link": (
        "from discreet.lab import linkage\n\n"
        "for found in linkage.run(people=1_500):\n    print(found)",
        TRY_OUT.format(name="link", people=80, title="Who has which disease?"),
    ),
    "audit": (
        "from discreet.lab import auditing\n\n"
        "for found in auditing.run_denials(90):\n    print(found)",
        "rows = auditing.time_audits([5, 7, 9])\n"
        'print(f"{auditing.growth(rows):.2f} times the work with each variable")',
        TRY_OUT.format(name="audit", people=40, title="Secrets told by denials"),
    ),
    "reconstruct": (
        "from discreet.lab import reconstruction\n\n"
        "print(reconstruction.attack_exact(48, 192, 0.0))\n"
        "print(reconstruction.attack_exact(48, 192, 4 * 48**0.5))\n"
        'print(reconstruction.attack_curator(48, 60, "1"))',
        "from IPython.display import SVG\n\n"
        "curve = reconstruction.accuracy_against_noise(48, [0, 0.25, 1, 4], repeats=1)\n"
        "picture = reconstruction.draw_curve({48: curve})" + PICTURE,
        "from discreet.lab import blocks, census\n\n"
        "print(blocks.attack_blocks(20, 8))\n"
        'print(blocks.attack_noisy_blocks(4, 8, "1"))\n'
        "for name, said in census.publish(census.BLOCK).items():\n"
        "    print(name, said and (said.people, float(said.median), round(float(said.mean), 1)))\n"
        "print(census.reconstruct(census.publish(census.BLOCK)))  # nobody else fits",
    ),
    "trace": (
        "from fractions import Fraction\n\nfrom discreet.lab import tracing\n\n"
        "for columns in (25, 250, 2_500):\n"
        "    print(tracing.attack(40, columns, epsilon=None, studies=2))\n"
        "print(tracing.attack(40, 2_500, epsilon=Fraction(1), studies=2))",
        "from IPython.display import SVG\n\n"
        "picture = tracing.draw_roc(40, 1_000, Fraction(1))" + PICTURE,
    ),
    "floats": (
        "from discreet.lab import floats\n\n"
        "for found in floats.run(draws=600):\n    print(found, found.remark)",
        TRY_OUT.format(name="floats", people=30, title="Certain by the last bits"),
    ),
    "dalenius": (
        "from discreet.lab import dalenius\n\n"
        "for found in dalenius.run(rounds=20):\n    print(found)",
        "print(dalenius.measure_distance(10, 7, 3), dalenius.distance_bound(7, 3))\n"
        "print(dalenius.tell_height())",
        TRY_OUT.format(name="dalenius", people="30_000", title="A stranger's secret"),
    ),
    "separate": (
        "from IPython.display import SVG\n\nfrom discreet.lab import separations\n\n"
        "picture = separations.draw_needed([2, 4], most=2_000)" + PICTURE,
        "attack = separations.Parity(studies=40)\nstudies = attack.make()\n"
        "for publish in (separations.InAdvance, separations.Reports):\n"
        '    with publish(studies, epsilon="1") as target:\n'
        "        print(attack.run(target, studies.table))",
        "for people, central, local in separations.local_and_central([100, 1_000]):\n"
        '    print(f"{people:,} people: off by {central:.1f} with a curator, {local:.1f} without")',
    ),
    "distance": (
        "from IPython.display import SVG\n\nfrom discreet.lab import distance\n\n"
        "print(distance.measure(200).statistical_distance)\n"
        "picture = distance.draw_curve(200)" + PICTURE,
        TRY_OUT.format(name="distance", people=60, title="Anybody's secret"),
    ),
    "simulate": (
        "from discreet.lab import simulation\nfrom discreet.mechanisms import Laplace\n\n"
        'found = simulation.simulate(Laplace(sensitivity=1, epsilon="0.5"), 4)\n'
        "print(found.loss, found.distance, found.compared)",
        TRY_OUT.format(name="simulate", people=60, title="Real or made?"),
    ),
}
"""The cells of each chapter."""
TRY = {
    "difference": "Give the curator more: `differencing.run(epsilon='8')`. When does it fail?",
    "link": "How many are alone in a larger town? `linkage.share_unique(rows)` tells.",
    "audit": "Let `auditing.attack` loose on values of your own.",
    "reconstruct": "On your own table, for its curator: `discreet lab reconstruct -s SESSION`.",
    "trace": "Twice the columns, or half the members: which tells more?",
    "floats": "Another scale: `floats.run(epsilon='0.01')`.",
    "dalenius": "Fewer people, so that noise counts for more: `dalenius.play(..., people=10**5)`.",
    "separate": "More columns: `separations.draw_needed([2, 4, 6, 8])` takes a little longer.",
    "distance": "Of more people: `distance.measure(10_000)`. Is it any better for the one shown?",
    "simulate": "Another ε: the loss is what was promised, to the last digit.",
}
"""What a reader may change."""


def cells(chapter: Chapter) -> list[tuple[str, str]]:
    """Kind and text of each cell."""
    found = [("markdown", f"# {chapter.title}\n\n{chapter.story}")]
    found += [("code", text) for text in CODE[chapter.name]]
    return [*found, ("markdown", f"Try: {TRY[chapter.name]}")]


def notebook(chapter: Chapter, run: Callable[[str], list[dict[str, Any]]]) -> dict[str, Any]:
    """The notebook of a chapter, with what its cells show."""
    made: list[dict[str, Any]] = []
    for number, (kind, text) in enumerate(cells(chapter)):
        cell: dict[str, Any] = {"id": f"{chapter.name}-{number}", "cell_type": kind, "metadata": {}}
        if kind == "code":
            cell |= {"execution_count": None, "outputs": run(text)}
        made.append({**cell, "source": text.splitlines(keepends=True)})
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    about = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return {"cells": made, "metadata": about, "nbformat": 4, "nbformat_minor": 5}


def shown(message: dict[str, Any]) -> dict[str, Any] | None:
    """A message of the kernel as a notebook keeps it; None if it shows nothing."""
    content = message["content"]
    match message["msg_type"]:
        case "stream":
            return {"output_type": "stream", "name": content["name"], "text": content["text"]}
        case "execute_result" | "display_data":
            return {"output_type": "display_data", "metadata": {}, "data": content["data"]}
        case "error":
            raise RuntimeError(content["evalue"])
    return None


def draw_pictures() -> None:
    """The pictures of the page, on light and on dark paper."""
    for name in PICTURED:
        picture = draw_narrow(find_chapter(name).run().pictures[0])
        for paper in ("light", "dark"):
            drawn = picture.svg(paper=paper)
            (STATIC / f"lab-{name}-{paper}.svg").write_text(drawn + "\n", "utf-8")


def main() -> None:
    """Run every chapter, and write its notebook."""
    from jupyter_client.manager import start_new_kernel

    manager, client = start_new_kernel(kernel_name="python3")

    def run(source: str) -> list[dict[str, Any]]:
        outputs: list[dict[str, Any]] = []

        def keep(message: dict[str, Any]) -> None:
            output = shown(message)
            if output is not None:
                outputs.append(output)

        client.execute_interactive(source, output_hook=keep, timeout=600)
        return outputs

    try:
        for number, chapter in enumerate(CHAPTERS, 1):
            text = json.dumps(notebook(chapter, run), indent=1, ensure_ascii=False)
            (FOLDER / f"{number:02d}_{chapter.name}.ipynb").write_text(text + "\n", "utf-8")
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    draw_pictures()


if __name__ == "__main__":
    main()
