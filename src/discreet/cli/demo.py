"""``discreet demo``: ten questions to a made-up clinic, told to somebody new to all this."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.rule import Rule
from rich.text import Text

from discreet.accounting.budget import Budget
from discreet.cli import clinic, screen
from discreet.cli.accounts import show_balance
from discreet.curate import session
from discreet.errors import Refusal
from discreet.release.answer import Answer

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.curate.curator import Curator

BY_CITY = "SELECT city, COUNT(*) AS patients FROM patients GROUP BY city"
SMOKERS = "SELECT COUNT(*) AS smokers FROM patients WHERE smoker"
AGE = "SELECT COUNT(*) AS patients, AVG(age) AS mean_age FROM patients"


def demo() -> None:
    """Ask a made-up clinic ten questions, and see what each answer costs."""
    tables = clinic.make_tables()
    with tempfile.TemporaryDirectory(prefix="discreet-demo-") as folder:
        home = Path(folder)
        clinic.write_tables(home, tables)
        session.init(home, clinic.SETTINGS)
        with session.open(home) as curator:
            curator.account.add_analyst("ana", limit=Budget(epsilon="0.6", delta="1e-9"))
            curator.account.add_analyst("mallory", limit=Budget(epsilon="0.1", delta="1e-9"))
            Demo(curator, tables).tell()


@dataclass(slots=True)
class Demo:
    """The questions, in order; the true tables are there only to be shown beside the answers."""

    curator: Curator
    tables: dict[str, pa.Table]
    asked: int = 0

    def tell(self) -> None:
        """The whole story."""
        _print_heading("A clinic, ten questions, one account")
        _say(
            f"A made-up clinic has {clinic.PATIENTS:,} patients in {len(clinic.CITIES)} cities. "
            "It wants to answer questions about them in SQL, so that all the answers together "
            "come out nearly as they would without any one patient.\n\n"
            "So every answer has a little noise in it. The answer says how much: 512 ± 30 means "
            "that the truth is within 30 of 512, 95 times in 100. And every answer has a price, "
            "called ε: at ε = 0.1 nothing that may come of the answer becomes more than about a "
            "tenth likelier because a patient took part. The clinic lets each patient lose ε = 1 "
            "in all, and writes every payment into a ledger before it looks at the data. Two "
            "analysts may ask: Ana may spend 0.6 of it, and Mallory, whom nobody knows well, 0.1."
        )
        self._balance("Before the first question")
        _remark(
            "Nobody lives in two cities, so each city has an account of its own. (Everyone else: "
            "people who visited and live in none.)"
        )
        self._counts()
        self._show_refused_and_free()
        self._cities()
        self._attack()
        self._too_much()
        self._balance("After ten questions")
        self._print_ending()

    # --- the questions -----------------------------------------------------------------------

    def _counts(self) -> None:
        self._ask(
            "How many patients are there?",
            "SELECT COUNT(*) AS patients FROM patients",
            epsilon="0.02",
        )
        by_city = self._ask("And in each city?", BY_CITY, epsilon="0.1")
        self._beside_truth(by_city)
        self._ask(
            "What does a visit cost, by its reason?",
            "SELECT reason, COUNT(*) AS visits, AVG(cost) AS mean_cost\n"
            "FROM visits GROUP BY reason",
            epsilon="0.1",
        )
        self._ask(
            "How many smokers are over 60, give or take 150?",
            "SELECT COUNT(*) AS smokers FROM patients\nWHERE smoker AND age > 60",
            within="150",
        )
        _remark("Ana said how good the answer must be, and paid the least that buys it.")

    def _show_refused_and_free(self) -> None:
        self._ask("Just show me the patients.", "SELECT city, age FROM patients", epsilon="0.1")
        _remark("Refused for its form: no noise can hide a person in a list of persons.")
        before = self.curator.spent
        self._ask(
            "The cities again, largest first.",
            f"{BY_CITY}\nORDER BY patients DESC",
            analyst="curator",
            epsilon="0.1",
        )
        if self.curator.spent == before:
            _remark(
                "The same noisy numbers as before, sorted: what is already known costs nothing."
            )

    def _cities(self) -> None:
        for city in ("Bergen", "Cork"):
            before = self.curator.spent
            self._ask(
                f"How old are the patients in {city}?",
                f"{AGE}\nWHERE city = '{city}'",
                epsilon="0.2",
            )
            if self.curator.spent == before:
                _remark(
                    f"What {city} pays is not added to what Bergen paid, for these are other "
                    "people: the patient who lost most has lost no more than before."
                )

    def _attack(self) -> None:
        """Differencing: two counts that differ by one person."""
        people = list(zip(*_columns(self.tables["patients"]), strict=True))
        anna = next(who for who, smokes in people if smokes)
        without = f"{SMOKERS} AND patient_id <> {anna}"
        self._print_heading(f"Does Anna smoke? She is patient {anna}.", "mallory")
        _sql(f"{SMOKERS}\n{without}", {"epsilon": "0.05 each"})
        exact = [
            sum(smokes and who != left_out for who, smokes in people) for left_out in (None, anna)
        ]
        noisy = [self._answer(sql, analyst="mallory", epsilon="0.05") for sql in (SMOKERS, without)]
        cells = [_cell(answer) for answer in noisy]
        screen.print_table(
            ("", "without noise", "what Mallory gets"),
            (
                ("all smokers", f"{exact[0]:,}", cells[0]),
                ("without Anna", f"{exact[1]:,}", cells[1]),
                ("so Anna …", "smokes" if exact[0] > exact[1] else "does not", "… who knows"),
            ),
            right=(1, 2),
        )
        _remark(
            "Without noise, two harmless counts give Anna away. With it, chance moves them by far "
            "more than one person does, whether she smokes or not."
        )

    def _too_much(self) -> None:
        self._ask(
            "Once more by city, but very precisely.", BY_CITY, analyst="curator", epsilon="0.9"
        )
        _remark("Refused for the budget: nothing was read, nothing was spent.")

    # --- how each is shown -------------------------------------------------------------------

    def _print_heading(self, words: str, analyst: str) -> None:
        self.asked += 1
        _print_heading(f"{self.asked}. {analyst}: {words}")

    def _ask(self, words: str, sql: str, *, analyst: str = "ana", **offer: Any) -> Answer | None:
        self._print_heading(words, analyst)
        _sql(sql, offer)
        try:
            answer = self._answer(sql, analyst=analyst, **offer)
        except Refusal as refusal:
            screen.print_text(str(refusal))
            return None
        screen.print_answer(answer, brief=True)
        return answer

    def _answer(self, sql: str, *, analyst: str, **offer: Any) -> Answer:
        answer = self.curator.ask(sql, analyst=analyst, **offer)
        if not isinstance(answer, Answer):
            raise TypeError("an answer was expected")
        return answer

    def _beside_truth(self, answer: Answer | None) -> None:
        """How far off the answer really was: known only because the clinic is made up."""
        if answer is None:
            return
        true = self.tables["patients"].group_by("city").aggregate([("city", "count")])
        counts = {row["city"]: row["city_count"] for row in true.to_pylist()}
        off = [
            abs(noisy - counts.get(city, 0))
            for city, noisy in zip(answer.column("city"), answer.column("patients"), strict=True)
        ]
        _remark(
            f"(The clinic is made up, so we may look: these are off by {min(off)} to {max(off)} "
            "patients.)"
        )

    def _balance(self, title: str) -> None:
        _print_heading(title)
        show_balance(self.curator, brief=True)

    def _print_ending(self) -> None:
        checked = self.curator.ledger.verify()
        _print_heading("What is left behind")
        _say(
            f"A ledger of {checked.records:,} records, each sealed with the hash of the one "
            "before; it was just checked from the first to the last. A crash, a second analyst "
            "or a restart does not make it forget.\n"
        )
        # One line, to be copied, however long the path is.
        typer.echo(f"Your own: {screen.name_program()} init clinic --sample")


def _print_heading(words: str) -> None:
    screen.console().print()
    screen.console().print(Rule(Text(words, style="bold"), align="left", characters="─"))


def _say(words: str) -> None:
    screen.print_text(words)


def _remark(words: str) -> None:
    screen.print_text(f"\n{words}")


def _sql(sql: str, offer: dict[str, Any] | None = None) -> None:
    *lines, last = sql.splitlines()
    for name, amount in (offer or {}).items():
        comment = f"-- {name} = {amount}"
        lines, last = (
            (lines, f"{last}   {comment}") if len(last) < 50 else ([*lines, last], comment)
        )
    for line in (*lines, last):
        screen.print_text(f"  {line}", style="cyan")
    screen.print_text("")


def _columns(table: pa.Table) -> tuple[list[int], list[bool]]:
    return table["patient_id"].to_pylist(), table["smoker"].to_pylist()


def _cell(answer: Answer) -> str:
    from discreet.release.display import cell

    name = answer.columns[0]
    return cell(answer.value(), answer.margins()[name][0])
