"""Reading and pricing a question: before any data, for every question that is asked."""

from __future__ import annotations

from fractions import Fraction

from bench.timing import best
from discreet.price import price
from discreet.question.catalogue import Catalogue
from discreet.question.offer import Offer
from discreet.question.schema import Schema
from discreet.question.sql import parse

SCHEMA = Schema.from_text("""
[tables.visits]
unit = "patient"
max_rows_per_unit = 10
[tables.visits.columns]
patient = "integer"
city = { type = "text", values = ["Cork", "Delft", "Faro"] }
age = { type = "integer", bounds = [0, 110] }
cost = { type = "decimal", bounds = [0, 800] }
""")
QUESTIONS = {
    "one count": "SELECT COUNT(*) AS n FROM visits",
    "typical": "SELECT city, COUNT(*) AS n, AVG(cost) AS mean FROM visits "
    "WHERE age BETWEEN 18 AND 65 GROUP BY city ORDER BY n DESC",
    "sub-query": "WITH p AS (SELECT patient, SUM(cost) AS total FROM visits GROUP BY patient) "
    "SELECT AVG(total) AS mean, VARIANCE(total) AS spread FROM p",
}


def main() -> None:
    print("parse + price, best of 30 (a typical question: at most 10 ms)")
    for name, text in QUESTIONS.items():
        read, both = best(
            [lambda text=text: parse(text, SCHEMA), lambda text=text: _priced(text)], 30
        )
        print(f"  {name:10} parse {1e3 * read:5.1f} ms, parse + price {1e3 * both:5.1f} ms")


def _priced(text: str) -> None:
    question = parse(text, SCHEMA)
    price(question, Offer(epsilon=Fraction(1, 2)), Catalogue(SCHEMA, multiplicity=lambda *_: None))


if __name__ == "__main__":
    main()
