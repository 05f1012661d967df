"""A survey: questions, one price for all of them, and what the reports say."""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from discreet.accounting.loss import Loss
from discreet.errors import InvalidParameter, SchemaRefusal
from discreet.exact.numbers import Exact
from discreet.local.choose import best
from discreet.local.frequencies import Estimate
from discreet.local.mean import HybridMean, MeanRandomizer
from discreet.local.odds import check_epsilon
from discreet.local.oracle import FrequencyOracle
from discreet.local.plan import Randomizer, plan, read_reports, write_report

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,62}", re.ASCII)
_MOST_QUESTIONS = 50
_MOST_OPTIONS = 1000
_MOST_TEXT = 400


@dataclass(frozen=True, slots=True)
class Question:
    """One question: options to choose from, or a number between bounds.

    ``name`` is that of its column, ``text`` what is asked; ``options`` are the answers, or
    ``lower`` and ``upper`` the bounds of a number.
    """

    name: str
    text: str
    options: tuple[str, ...] = ()
    lower: Fraction | None = None
    upper: Fraction | None = None

    def answer(self, value: Any) -> Any:
        """What a randomizer takes for the answer ``value``: the place of an option, or a number."""
        if not self.options:
            try:
                return float(value)
            except (TypeError, ValueError):
                raise _no_answer(self) from None
        if value not in self.options:
            raise _no_answer(self)
        return self.options.index(value)


@dataclass(frozen=True)
class Survey:
    """Questions and the most that all answers of a respondent together may cost.

    ``name`` and ``title`` say what it is called, ``epsilon`` is that most, divided among
    ``questions``; ``text`` is the TOML that it was declared in.

    >>> survey = Survey.parse('''
    ... name = "smoking"
    ... title = "Smoking among students"
    ... epsilon = 2
    ... [[questions]]
    ... name = "smokes"
    ... text = "Do you smoke?"
    ... options = ["never", "sometimes", "daily"]
    ... [[questions]]
    ... name = "sleep"
    ... text = "How many hours did you sleep last night?"
    ... lower = 0
    ... upper = 14
    ... ''')
    >>> [type(one).__name__ for one in survey.randomizers], survey.loss.epsilon
    (['Direct', 'HybridMean'], Fraction(2, 1))
    >>> len(survey.release({"smokes": "never", "sleep": 7.5}))
    2
    """

    name: str
    title: str
    epsilon: Fraction
    questions: tuple[Question, ...]
    text: str

    @classmethod
    def read(cls, path: Path) -> Survey:
        """The survey declared in the TOML file ``path``."""
        try:
            return cls.parse(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError):
            raise SchemaRefusal(
                "S1",
                f"{path.name!r} cannot be read.",
                why="a survey begins with the file that says what is asked.",
                fix="check the name of the file, and that it is text in UTF-8.",
            ) from None

    @classmethod
    def parse(cls, text: str) -> Survey:
        """The survey declared in TOML, ``text``."""
        try:
            found = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise _bad(f"the file is not TOML: {error}.", "S1") from None
        unknown = sorted(set(found) - {"name", "title", "epsilon", "questions"})
        questions = found.get("questions")
        if unknown or not isinstance(questions, list) or not 1 <= len(questions) <= _MOST_QUESTIONS:
            raise _bad(
                f"{unknown[0]!r} is not understood."
                if unknown
                else f"there must be 1 to {_MOST_QUESTIONS} tables [[questions]]."
            )
        name = _identifier(found.get("name"), "name")
        asked = tuple(_question(one) for one in questions)
        if len({one.name for one in asked}) != len(asked):
            raise _bad("two questions have one name.")
        if isinstance(found.get("epsilon"), bool) or "epsilon" not in found:
            raise _bad("epsilon is missing: the most that a respondent may lose.")
        epsilon = check_epsilon(found["epsilon"])
        return cls(name, _words(found.get("title", name), "title"), epsilon, asked, text)

    @cached_property
    def randomizers(self) -> tuple[Randomizer, ...]:
        """One for each question, each with an equal share of epsilon."""
        share = self.epsilon / len(self.questions)
        return tuple(_randomizer(one, share) for one in self.questions)

    @property
    def loss(self) -> Loss:
        """What a respondent loses by all answers together: shares of epsilon add up."""
        return Loss.pure(self.epsilon)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of what is asked and how it is randomised."""
        said = json.dumps(self.to_json(), sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(said.encode()).hexdigest()

    def to_json(self) -> dict[str, Any]:
        """What a page needs to ask and to randomise."""
        return {
            "name": self.name,
            "title": self.title,
            "epsilon": str(self.epsilon),
            "questions": [
                {
                    "name": one.name,
                    "text": one.text,
                    "options": list(one.options),
                    "plan": plan(randomizer),
                }
                for one, randomizer in zip(self.questions, self.randomizers, strict=True)
            ],
        }

    def release(self, answers: Mapping[str, Any]) -> list[int | str]:
        """The report of one respondent: one entry for each question, randomised.

        ``answers`` are by the questions' names.
        """
        return [
            write_report(randomizer, randomizer.release(one.answer(answers.get(one.name))))
            for one, randomizer in zip(self.questions, self.randomizers, strict=True)
        ]

    def release_many(self, answers: Mapping[str, Sequence[Any]]) -> list[list[int | str]]:
        """The reports of many respondents: ``answers`` has a column for each question, by name."""
        missing = [one.name for one in self.questions if one.name not in answers]
        if missing:
            raise _not_given(f"there is no column {missing[0]!r}.")
        columns = []
        for one, randomizer in zip(self.questions, self.randomizers, strict=True):
            known = {value: one.answer(value) for value in dict.fromkeys(answers[one.name])}
            given = np.array([known[value] for value in answers[one.name]])
            made = randomizer.release(given) if given.size else []
            columns.append([write_report(randomizer, report) for report in made])
        return [list(row) for row in zip(*columns, strict=True)]

    def check(self, report: Any) -> None:
        """Refuse a ``report`` that no respondent can have sent."""
        self.columns([report])

    def columns(self, reports: Sequence[Any]) -> list[Any]:
        """For each question its entries of the ``reports``, as its randomizer takes them."""
        count = len(self.questions)
        if any(not isinstance(one, list) or len(one) != count for one in reports):
            raise _not_given(f"a report has {count} entries, one for each question.")
        return [
            read_reports(randomizer, [one[place] for one in reports])
            for place, randomizer in enumerate(self.randomizers)
        ]

    def results(self, reports: Sequence[Any], *, beta: Exact = "0.05") -> list[Result]:
        """What the ``reports`` say about each question, with ends that hold but for ``beta``."""
        found = []
        for question, randomizer, column in zip(
            self.questions, self.randomizers, self.columns(reports), strict=True
        ):
            lines: list[tuple[str, Estimate]] = []
            if isinstance(randomizer, FrequencyOracle):
                counts = randomizer.estimate(column)
                lines = [
                    (option, counts.count([place], beta=beta))
                    for place, option in enumerate(question.options)
                ]
            elif len(reports):
                lines = [("mean", _within(question, randomizer.estimate(column, beta=beta)))]
            found.append(Result(question, randomizer, len(reports), tuple(lines)))
        return found


@dataclass(frozen=True, slots=True)
class Result:
    """What the reports say about one question: numbers of respondents, or a mean.

    ``question`` was randomised by ``randomizer``, so many ``respondents`` reported; ``lines`` has
    what each number is of, and its estimate.
    """

    question: Question
    randomizer: Randomizer
    respondents: int
    lines: tuple[tuple[str, Estimate], ...]

    def to_json(self) -> dict[str, Any]:
        """Everything, as plain JSON."""
        return {
            "question": self.question.name,
            "text": self.question.text,
            "randomizer": repr(self.randomizer),
            "epsilon": str(self.randomizer.epsilon),
            "respondents": self.respondents,
            "kind": "mean" if isinstance(self.randomizer, MeanRandomizer) else "counts",
            "estimates": [
                {
                    "answer": name,
                    "value": one.value,
                    "standard_error": one.standard_error,
                    "low": one.low,
                    "high": one.high,
                }
                for name, one in self.lines
            ],
        }


def _within(question: Question, mean: Estimate) -> Estimate:
    """A mean whose ends lie between the bounds, where every mean of answers lies."""
    least, most = float(question.lower or 0), float(question.upper or 0)
    low, high = (min(max(end, least), most) for end in (mean.low, mean.high))
    return mean._replace(low=low, high=high)


def _randomizer(question: Question, epsilon: Fraction) -> Randomizer:
    if question.lower is not None and question.upper is not None:
        return HybridMean(lower=question.lower, upper=question.upper, epsilon=epsilon)
    return best(len(question.options), epsilon, 1, most_bits=_MOST_OPTIONS).randomizer


def _question(found: Any) -> Question:
    if not isinstance(found, dict):
        raise _bad("each question is a table [[questions]].")
    unknown = sorted(set(found) - {"name", "text", "options", "lower", "upper"})
    if unknown:
        raise _bad(f"{unknown[0]!r} is not understood in a question.")
    name = _identifier(found.get("name"), "the name of a question")
    text = _words(found.get("text", name), f"the text of {name!r}")
    options = found.get("options")
    if options is not None and "lower" not in found and "upper" not in found:
        words = tuple(_words(one, f"an option of {name!r}") for one in _read_options(options, name))
        if len(set(words)) != len(words) or not 2 <= len(words) <= _MOST_OPTIONS:
            raise _bad(f"{name!r} needs 2 to {_MOST_OPTIONS} different options.")
        return Question(name, text, words)
    bounds = found.get("lower"), found.get("upper")
    numbers = [one for one in bounds if isinstance(one, int | float) and not isinstance(one, bool)]
    if options is not None or len(numbers) != 2 or not numbers[0] < numbers[1]:
        raise _bad(f"{name!r} needs options, or lower and upper bounds in order.")
    low, high = (Fraction(str(one)) for one in numbers)
    return Question(name, text, (), low, high)


def _read_options(options: Any, name: str) -> list[Any]:
    if not isinstance(options, list):
        raise _bad(f"the options of {name!r} must be a list.")
    return options


def _identifier(value: Any, what: str) -> str:
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise _bad(f"{what} must be a word of letters, digits and _, beginning with a letter.")
    return value


def _words(value: Any, what: str) -> str:
    fitting = isinstance(value, str) and 1 <= len(value) <= _MOST_TEXT and value.isprintable()
    if not fitting:
        raise _bad(f"{what} must be 1 to {_MOST_TEXT} letters on one line.")
    return str(value)


def _bad(what: str, code: str = "S2") -> SchemaRefusal:
    return SchemaRefusal(
        code,
        what,
        why="respondents must be asked exactly what their answers are randomised for.",
        fix='declare name, epsilon and [[questions]] with options = ["yes", "no"], or bounds.',
    )


def _no_answer(question: Question) -> InvalidParameter:
    known = ", ".join(question.options[:8]) or "numbers"
    return InvalidParameter(
        "P6",
        f"an answer to {question.name!r} is not one of those declared: {known}.",
        why="a report outside the declared answers would say who gave it.",
        fix="choose one of the declared answers.",
    )


def _not_given(what: str) -> InvalidParameter:
    return InvalidParameter(
        "P6",
        what,
        why="an answer that is missing would say something about who did not give it.",
        fix="give one answer to each question of the survey.",
    )


__all__ = ["Question", "Result", "Survey"]
