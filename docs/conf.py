"""Sphinx: plain Markdown in, a site out."""

project = "discreet"
author = "the discreet authors"
copyright = "the discreet authors, Apache-2.0"
extensions = ["myst_parser"]
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 3
suppress_warnings = ["myst.xref_missing", "misc.highlighting_failure"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "discreet"
