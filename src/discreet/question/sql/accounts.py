"""What is left in the account, asked for in SQL: Snowflake's ESTIMATE_REMAINING_DP_AGGREGATES.

It is a table of one row that the account fills in, and no person's row says anything of it.  It
may stand in FROM, within TABLE(...) or not, or by itself where one number is wanted.
"""

from __future__ import annotations

from sqlglot import exp

from discreet.errors import QuestionRefusal
from discreet.question.sql.dialect import Reader
from discreet.question.sql.scope import find_name, list_names, suggest_name
from discreet.question.statement import ACCOUNT_COLUMNS

_NAME = "ESTIMATE_REMAINING_DP_AGGREGATES"

ACCOUNT = "account"
"""Marks a table that the account fills in, by the table whose people it is asked about."""


def name_accounts(tree: exp.Expr, reader: Reader) -> None:
    """Put a table in the place of each call, in ``tree`` itself; or refuse it."""
    for call in [node for node in tree.find_all(exp.Anonymous) if node.name.upper() == _NAME]:
        table = _read_table(call, reader)
        place: exp.Expr = call
        while isinstance(place.parent, exp.Dot):  # SNOWFLAKE.DATA_PRIVACY.…
            place = place.parent
        around = place.parent
        if isinstance(around, exp.Anonymous) and around.name.upper() == "TABLE":
            place, around = around, around.parent
        named = exp.Table(this=exp.to_identifier(_NAME, quoted=True))
        named.meta[ACCOUNT] = table
        if isinstance(around, exp.Table):
            named.set("alias", around.args.get("alias"))
            around.replace(named)
        else:
            _replace_number(place, named)


def _replace_number(place: exp.Expr, named: exp.Table) -> None:
    """``SELECT estimate('visits')`` shows the number itself, under its own name."""
    first = exp.column(exp.to_identifier(ACCOUNT_COLUMNS[0].name, quoted=True))
    query = exp.Select(expressions=[first], from_=exp.From(this=named))
    shown: exp.Expr = exp.Subquery(this=query)
    if isinstance(place.parent, exp.Select) and place.arg_key == "expressions":
        name = exp.to_identifier(ACCOUNT_COLUMNS[0].name, quoted=True)
        shown = exp.Alias(this=shown, alias=name)
    place.replace(shown)


def _read_table(call: exp.Expr, reader: Reader) -> str:
    """The private table that is named, perhaps after its database."""
    said = call.expressions[0] if len(call.expressions) == 1 else None
    if not isinstance(said, exp.Literal) or not said.is_string:
        raise _refuse(call, reader, "it takes the name of a table, as a text.")
    tables = reader.schema.tables
    name = said.name.rpartition(".")[2].strip('"')
    key = find_name(name, tables, said, reader)
    if key is None:
        raise _refuse(said, reader, f"there is no table '{name}'.", suggest_name(name, tables))
    if tables[key].public:
        raise _refuse(said, reader, f"'{key}' is public, and costs nobody anything.")
    return key


def _refuse(node: exp.Expr, reader: Reader, what: str, nearest: str = "") -> QuestionRefusal:
    private = [name for name, table in reader.schema.tables.items() if not table.public]
    words = f"{nearest}the private tables are {list_names(private)}, each in single quotes."

    def name_another(said: exp.Expr) -> None:
        said.replace(exp.Literal.string(private[0]))

    change = name_another if private and isinstance(node, exp.Literal) else None
    return reader.refusal(
        "Q6",
        node,
        what,
        why="the account is kept for people, by the tables that have rows of theirs.",
        fix=reader.suggest_fix(node, change, words, f"{words[:-1]}: "),
    )


__all__ = ["ACCOUNT", "name_accounts"]
