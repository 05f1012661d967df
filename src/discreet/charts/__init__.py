"""Pictures in one grammar: each chart of an answer or a report is a Vega-Lite specification.

A specification is plain data: it is shown by notebooks as it is, edited as an Altair chart, and
rendered to SVG without a browser.  Imports of Altair and of the renderer are made where one of
them is asked for; a specification itself needs neither.

>>> shown = lines([("ours", [(1, 0.5), (2, 0.25)])], x="n", y="error", title="Error against n")
>>> shown.spec["title"]["text"], shown.spec["data"]["values"][0]
('Error against n', {'x': 1, 'y': 0.5, 'line': 'ours'})
"""

from discreet.charts.answer import draw_answer
from discreet.charts.grammar import bars, fit, heat, intervals, lines
from discreet.charts.picture import Picture

__all__ = ["Picture", "bars", "draw_answer", "fit", "heat", "intervals", "lines"]
