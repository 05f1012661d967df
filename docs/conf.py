"""Sphinx: Markdown and docstrings in, a site out."""

import re

from docutils import nodes
from latex2mathml.converter import convert

from discreet.accounting.budget import Budget
from discreet.accounting.loss import Loss
from discreet.curate import remote

project = "discreet"
author = "the discreet authors"
copyright = "the discreet authors, Apache-2.0"
extensions = ["myst_parser", "sphinx.ext.autodoc"]
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 3

exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "discreet"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_math_renderer = "mathml"

autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_default_options = {"members": True}


# The client knows these for type checkers only, and autodoc must tell whose they are.
remote.Budget, remote.Loss = Budget, Loss


def mark_bars(_app, _what, _name, _object, _options, lines):
    """|x| in a docstring is an absolute value, and nothing of Sphinx's."""
    for place, line in enumerate(lines):
        parts = re.split(r"(``.*?``)", line)
        lines[place] = "".join(
            part if part.startswith("``") else part.replace("|", r"\|") for part in parts
        )


LONG = 30
"""Letters of LaTeX beyond which a formula may be wider than a phone: it scrolls by itself."""
SCROLLS = "display: inline-block; max-width: 100%; overflow: auto hidden; vertical-align: middle"


def write_inline(self, node):
    """A formula as MathML, which browsers set by themselves: no script, no font, no request."""
    formula = convert(node.astext())
    if len(node.astext()) > LONG:
        formula = f'<span style="{SCROLLS}">{formula}</span>'
    self.body.append(formula)
    raise nodes.SkipNode


def write_block(self, node):
    """A formula on a line of its own, which scrolls where the screen is narrow."""
    formula = convert(node.astext(), display="block")
    self.body.append(f'<div class="math" style="overflow-x: auto">{formula}</div>')
    raise nodes.SkipNode


def setup(app):
    app.connect("autodoc-process-docstring", mark_bars)
    app.add_html_math_renderer("mathml", (write_inline, None), (write_block, None))
