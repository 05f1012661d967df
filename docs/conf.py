"""Sphinx: plain Markdown in, a site out."""

project = "discreet"
author = "the discreet authors"
copyright = "the discreet authors, Apache-2.0"
extensions = ["myst_parser"]
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 3

exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "discreet"
