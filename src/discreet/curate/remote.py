"""A curator behind a server, with the methods of one in this process.

    clinic = discreet.connect("https://clinic.example", key="discreet_...")
    clinic.ask("SELECT COUNT(*) AS n FROM visits", epsilon="0.1")

Answers and explanations are the same objects: values, margins at any confidence
and certificates are computed here, from what the server released.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from fractions import Fraction
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, cast
from urllib.parse import quote

import httpx

from discreet import errors
from discreet.curate.remote_releases import RemoteReleases
from discreet.errors import CODES, AccessRefusal, Refusal, Span
from discreet.exact.numbers import Exact
from discreet.ledger.keys import is_loopback, public_part
from discreet.question.offer import Amounts, Offer, unpaid_refusal

# What an answer, a price or the schema is made of is imported when the first of them arrives:
# whoever connects needs neither an engine nor a parser.
if TYPE_CHECKING:
    from discreet.accounting.budget import Budget
    from discreet.accounting.loss import Loss
    from discreet.curate.curator import Asking
    from discreet.curate.quote import Quote
    from discreet.curate.remote_runs import RemoteInterview, RemoteLearning, RemoteRun, Send
    from discreet.curate.reports import Checks
    from discreet.ledger import Entry
    from discreet.price.watch import WatchSettings
    from discreet.question.builder import Rows
    from discreet.question.schema import Schema
    from discreet.release.answer import Answer
    from discreet.release.explanation import Explanation

RECORD = "application/vnd.discreet+json"
_TRIES = 4
_PAUSE_S = 0.5
_LONGEST_PAUSE_S = 10.0
_WAIT_S = 20.0
_MISREAD = (
    *(Refusal, ArithmeticError, AttributeError),
    *(LookupError, RecursionError, TypeError, ValueError),
)
"""What reading something else than expected may raise."""
T = TypeVar("T")
_FAMILIES = {
    kind.family: kind
    for kind in (
        *(errors.InvalidParameter, errors.Halted, errors.SchemaRefusal, errors.QuestionRefusal),
        *(errors.BudgetRefusal, errors.AccessRefusal, errors.LedgerRefusal, errors.DataRefusal),
    )
}


def connect(
    url: str,
    *,
    key: str,
    dataset: str | None = None,
    timeout_s: float = 60.0,
    insecure: bool = False,
    **options: Any,
) -> Remote:
    """The curator behind ``url``; ``dataset`` may be left out if the key opens one only.

    A ``key`` is not sent to another machine without TLS, unless ``insecure``.
    ``timeout_s`` is how long one request may take; ``options`` go to the HTTP client (``verify=``
    for a certificate of your own).
    """
    address = _parse_url(url)
    if address.scheme != "https" and not insecure and not is_loopback(address.host):
        raise AccessRefusal(
            "A19",
            "the address leads to another machine, and there is no TLS.",
            why="whoever reads a key on the way can spend what the people in the data may lose.",
            fix="connect to https://..., or say insecure=True.",
        )
    key = key.strip() if isinstance(key, str) else ""  # a key that was pasted may end its line
    if public_part(key) is None:
        raise _no_key("what was given as key= is not a key.")
    client = httpx.Client(
        base_url=address,
        headers={"Authorization": f"Bearer {key}"},
        timeout=timeout_s,
        **options,
    )
    try:
        return Remote(_Connection(client), dataset)
    except BaseException:
        client.close()
        raise


def _parse_url(url: str) -> httpx.URL:
    try:
        return httpx.URL(url.rstrip("/"))
    except (httpx.InvalidURL, ValueError):
        raise _unreachable() from None


@dataclass(frozen=True, slots=True, repr=False)
class RemoteBalance:
    """What is left, as the server says it in ``text``; what was ``spent``, and its ``shape``."""

    spent: Loss
    """What was lost in the block that lost most."""
    text: str
    shape: Mapping[str, Any]
    """All of it, as it was sent."""

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        return self.text


class Remote(RemoteReleases):
    """The curator of one ``dataset``, behind a ``connection``; made by :func:`connect`.

    ``dataset`` may be None if the key opens one only.
    """

    def __init__(self, connection: _Connection, dataset: str | None) -> None:
        self._connection = connection
        opened = connection.get("/v1/me", _read_grants)
        self.dataset = dataset or _choose_only(opened)
        self._path = f"/v1/datasets/{quote(self.dataset, safe='')}"
        if self.dataset not in opened:
            # Refused in the server's own words.
            connection.get(self._path, _read_declaration, accept=RECORD)
            raise _strange()
        self.analyst = opened[self.dataset]

    def __repr__(self) -> str:
        return f"<{self.dataset} at {self._connection.address}, asked by {self.analyst}>"

    @cached_property
    def _declaration(self) -> tuple[Schema, Budget]:
        return self._connection.get(self._path, _read_declaration, accept=RECORD)

    @property
    def schema(self) -> Schema:
        """What is public of the tables; fetched when it is first looked at."""
        return self._declaration[0]

    @property
    def budget(self) -> Budget:
        """What may be lost in all, by anyone in any one block."""
        return self._declaration[1]

    # --- asking ------------------------------------------------------------------------------

    def ask(
        self,
        question: Asking,
        **offer: Unpack[Amounts],
    ) -> Answer:
        """Answer ``question``, or refuse before the data is touched; ``offer`` as `Curator.ask`'s.

        A lost connection is tried again, free.  A question about a release or a survey is free,
        and needs no offer.
        """
        text = _question_text(question)
        if text.upper().split(None, 1)[:1] == ["EXPLAIN"]:
            raise unpaid_refusal()
        body = {"question": text, **Offer.of(**offer).to_json()}
        from discreet.noise.entropy import random_bytes

        headers = {"Idempotency-Key": random_bytes(16).hex()}
        path = f"{self._path}/ask"
        while True:
            found = self._connection.post(
                path, _read_asked, {**body, "wait_s": _WAIT_S}, headers=headers
            )
            if not isinstance(found, str):
                return found
            self._wait(found)

    def ask_all(self, questions: Sequence[Asking], **offer: Any) -> list[Answer]:
        """Answer several ``questions`` as one release: one price, one charge, an answer for each.

        ``offer`` is that of :meth:`ask`, for all of them together; ``within`` may be a list, a
        margin for each.  A lost connection is tried again, free.
        """
        from discreet.noise.entropy import random_bytes

        body = {"questions": _list_texts(questions), **_write_offers(offer)}
        headers = {"Idempotency-Key": random_bytes(16).hex()}
        return self._connection.post(f"{self._path}/ask_all", _read_all, body, headers=headers)

    def _wait(self, number: str) -> None:
        """Until the job has ended; then the same request is answered at once, and free."""
        path = f"{self._path}/jobs/{quote(number, safe='')}?wait_s={_WAIT_S:g}"
        while self._connection.get(path, _is_under_way):
            pass

    def explain(
        self,
        question: Asking,
        **offer: Unpack[Amounts],
    ) -> Explanation:
        """What ``question`` would cost at ``offer``, and how good its answer would be; free."""
        return self.price(question, **offer).explain()

    def price(
        self,
        question: Asking,
        **offer: Unpack[Amounts],
    ) -> Quote:
        """What ``question`` would cost now at ``offer``, and whether the account would pay."""
        body = {"question": _question_text(question), **Offer.of(**offer).to_json()}
        return self._connection.post(f"{self._path}/explain", _read_quote, body)

    def table(self, name: str, *, alias: str | None = None) -> Rows:
        """The rows of the table ``name``, called ``alias``, to build a question in Python.

        Nothing is read before asking.
        """
        from discreet.question.builder import table

        return table(name, self.schema, alias=alias)

    def answer(self, number: int) -> Answer:
        """The answer with that ``number``, which was paid for; free."""
        return self._connection.get(f"{self._path}/answers/{number}", _read_answer, accept=RECORD)

    # --- runs ----------------------------------------------------------------------------------

    def watch(
        self, *, name: str = "", once: bool = False, **settings: Unpack[WatchSettings]
    ) -> RemoteRun:
        """Open a run that tells which numbers are above a threshold, and is paid for once.

        ``settings``, ``name`` and ``once`` are those of :meth:`Curator.watch`.
        """
        body = {**_write_settings(settings), "name": name, "once": once}
        shape = self._connection.send("POST", f"{self._path}/runs", body)
        return self._make_run(shape)

    def run(self, id: int) -> RemoteRun:  # noqa: A002
        """The run numbered ``id``, as far as it has come."""
        return self._make_run(self._connection.send("GET", f"{self._path}/runs/{id}", None))

    def explain_watch(
        self, question: Asking | None = None, **settings: Unpack[WatchSettings]
    ) -> Mapping[str, Any]:
        """What a run of ``settings`` would cost, and how wrong it may be on ``question``; free."""
        body = _write_settings(settings)
        if question is not None:
            body["question"] = _question_text(question)
        found: Mapping[str, Any] = self._connection.send("POST", f"{self._path}/runs/explain", body)
        return found

    def choose(
        self,
        candidates: Asking | Mapping[str, Asking],
        *,
        k: int = 1,
        counts: bool = False,
        **offer: Unpack[Amounts],
    ) -> Mapping[str, Any]:
        """Which of ``candidates`` is largest, or the ``k`` largest, as it is sent.

        With ``counts``, how large; the ``offer`` as :meth:`Curator.choose`'s.
        """
        return self._compute("choose", _write_choice(candidates, k, counts, Offer.of(**offer)))

    def explain_choose(
        self,
        candidates: Asking | Mapping[str, Asking],
        *,
        k: int = 1,
        counts: bool = False,
        **offer: Unpack[Amounts],
    ) -> Mapping[str, Any]:
        """What choosing ``k`` of ``candidates`` would cost, and how good it would be; free.

        ``counts`` and the ``offer`` are those of :meth:`choose`.
        """
        return self._post("choose/explain", _write_choice(candidates, k, counts, Offer.of(**offer)))

    def interview(self, *, sensitivity: Exact, epsilon: Exact, name: str = "") -> RemoteInterview:
        """Open a run that answers while one unit moves all its numbers by at most ``sensitivity``.

        ``epsilon`` and ``name`` are those of :meth:`Curator.interview`.
        """
        from discreet.curate.remote_runs import RemoteInterview

        settings = _write_settings({"sensitivity": sensitivity, "epsilon": epsilon, "name": name})
        shape = self._post("interviews", settings)
        return RemoteInterview(shape, self._send_to("interviews", shape), _question_text)

    def explain_interview(
        self, *questions: Asking, sensitivity: Exact, epsilon: Exact
    ) -> Mapping[str, Any]:
        """What an interview would cost, and whether it would answer ``questions``; free.

        ``sensitivity`` and ``epsilon`` are those of :meth:`interview`.
        """
        settings = _write_settings({"sensitivity": sensitivity, "epsilon": epsilon})
        asked = [_question_text(question) for question in questions]
        return self._post("interviews/explain", {**settings, "questions": asked})

    def learn(self, **settings: Any) -> RemoteLearning:
        """Open a run of private multiplicative weights; ``settings`` as :meth:`Curator.learn`'s."""
        from discreet.curate.remote_runs import RemoteLearning

        written = _write_learning(settings)

        def send(questions: list[str]) -> Mapping[str, Any]:
            return self._compute("learn", {**written, "ask": questions})

        return RemoteLearning(send([]), send, _question_text)

    def explain_learn(self, **settings: Any) -> Mapping[str, Any]:
        """What such a run would cost, and within what its answers would be, as it is sent; free.

        ``settings`` are those of :meth:`Curator.learn`.
        """
        return self._post("learn/explain", _write_learning(settings))

    def quality(self, checks: Checks, *, epsilon: Exact) -> Mapping[str, Any]:
        """``checks`` as :meth:`Curator.quality` makes them, for ``epsilon``; as it is sent."""
        return self._compute("quality", _write_checks(checks, epsilon))

    def explain_quality(self, checks: Checks, *, epsilon: Exact) -> Mapping[str, Any]:
        """What a report about ``checks`` would cost at ``epsilon``, and how far it is off; free."""
        return self._post("quality/explain", _write_checks(checks, epsilon))

    def robust_median(
        self, question: Asking, *, epsilon: Exact, delta: Exact, bound: Exact | None = None
    ) -> Mapping[str, Any]:
        """The median of ``question`` with noise to fit the data, as it is sent.

        ``epsilon``, ``delta`` and ``bound`` are those of :meth:`Curator.robust_median`.
        """
        settings = _write_settings({"epsilon": epsilon, "delta": delta, "bound": bound})
        return self._compute("median", {"question": _question_text(question), **settings})

    def explain_robust_median(
        self, question: Asking, *, epsilon: Exact, delta: Exact, bound: Exact | None = None
    ) -> Mapping[str, Any]:
        """What it would cost; ``question``, ``epsilon``, ``delta`` and ``bound`` as there; free."""
        settings = _write_settings({"epsilon": epsilon, "delta": delta, "bound": bound})
        return self._post("median/explain", {"question": _question_text(question), **settings})

    def _post(self, what: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self._connection.send("POST", f"{self._path}/{what}", body)
        return found

    def _compute(self, what: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """What may take a while: waited for, and come back for as long as it takes."""
        found = self._post(what, {**body, "wait_s": _WAIT_S})
        while found.get("state") == "running":
            path = f"{self._path}/works/{quote(str(found['id']), safe='')}?wait_s={_WAIT_S:g}"
            try:
                found = self._connection.send("GET", path, None)
            except AccessRefusal as refusal:
                if refusal.code != "A13":
                    raise
                # The server was started again: what was paid for is told as it was.
                found = self._post(what, {**body, "wait_s": _WAIT_S})
        return found

    def _make_run(self, shape: Mapping[str, Any]) -> RemoteRun:
        from discreet.curate.remote_runs import RemoteRun

        return RemoteRun(shape, self._send_to("runs", shape), _question_text)

    def _send_to(self, kind: str, shape: Mapping[str, Any]) -> Send:
        """Requests to one run."""
        path = f"{kind}/{quote(str(shape['id']), safe='')}"

        def send(method: str, rest: str, body: Mapping[str, Any] | None) -> Any:
            if method == "POST" and body is not None:
                return self._compute(f"{path}{rest}", body)
            return self._connection.send(method, f"{self._path}/{path}{rest}", body)

        return send

    def surveys(self) -> list[Mapping[str, Any]]:
        """The surveys whose reports can be asked for free, as they are sent."""
        found: Mapping[str, Any] = self._connection.send("GET", f"{self._path}/surveys", None)
        return list(found["surveys"])

    def ask_survey(
        self, name: str, question: str, *, confidence: Exact = "0.95"
    ) -> Mapping[str, Any]:
        """What the reports of the survey ``name`` say to ``question``, at ``confidence``; free."""
        body = {"question": question, "confidence": str(confidence)}
        return self._post(f"surveys/{quote(name, safe='')}/ask", body)

    # --- the account ---------------------------------------------------------------------------

    def balance(self, analyst: str | None = None) -> RemoteBalance:
        """What is left of the dataset or an ``analyst``'s allocation; ``str`` says it in words."""
        named = "" if analyst is None else f"?analyst={quote(analyst, safe='')}"
        return self._connection.get(f"{self._path}/balance{named}", _read_balance)

    @property
    def spent(self) -> Loss:
        """What has been charged so far."""
        return self.balance().spent

    def transcript(self, analyst: str | None = None) -> tuple[Entry, ...]:
        """Every charge and refusal that the key may see, or those of ``analyst``, in order."""
        named = "" if analyst is None else f"&analyst={quote(analyst, safe='')}"
        found: list[Entry] = []
        before = ""
        while True:
            path = f"{self._path}/transcript?limit=1000{named}{before}"
            entries, earlier = self._connection.get(path, _read_page)
            found += entries
            if earlier is None:
                return tuple(reversed(found))
            before = f"&before={earlier}"

    # --- the end -------------------------------------------------------------------------------

    def close(self) -> None:
        """Let go of the connection."""
        self._connection.close()

    def __enter__(self) -> Remote:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


class _Connection:
    """Requests to one server: refusals raised, what can be tried again tried again."""

    def __init__(self, client: httpx.Client) -> None:
        self._client = client

    @property
    def address(self) -> str:
        """Where the server is."""
        return str(self._client.base_url).rstrip("/")

    def get(
        self, path: str, read: Callable[[httpx.Response], T], *, accept: str = "application/json"
    ) -> T:
        return _read_response(read, self._send("GET", path, None, {"Accept": accept}))

    def post(
        self,
        path: str,
        read: Callable[[httpx.Response], T],
        body: Mapping[str, Any],
        *,
        headers: Mapping[str, str] | None = None,
    ) -> T:
        return _read_response(
            read, self._send("POST", path, body, {"Accept": RECORD, **(headers or {})})
        )

    def send(self, method: str, path: str, body: Mapping[str, Any] | None) -> Any:
        """What comes back of a request, as JSON."""
        sent = self._send(method, path, body, {"Accept": "application/json"})
        return _read_response(lambda response: response.json(), sent)

    def _send(
        self, method: str, path: str, body: Mapping[str, Any] | None, headers: dict[str, str]
    ) -> httpx.Response:
        for attempt in range(_TRIES):
            last = attempt == _TRIES - 1
            try:
                response = self._client.request(method, path, json=body, headers=headers)
            except httpx.RequestError:
                if last:
                    raise _unreachable() from None
                time.sleep(_PAUSE_S * 2**attempt)
                continue
            if response.status_code == 429 and not last:
                time.sleep(_pause_s(response.headers.get("Retry-After", "")))
                continue
            if response.is_success:
                return response
            raise _read_refusal(response, body)
        raise _unreachable()

    def close(self) -> None:
        self._client.close()


# --- what is sent ------------------------------------------------------------------------------


def _write_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a run as JSON: exact numbers as texts."""
    return {
        name: value if isinstance(value, bool | int) or value is None else str(value)
        for name, value in settings.items()
    }


def _write_learning(settings: Mapping[str, Any]) -> dict[str, Any]:
    columns = list(settings.get("columns", ()))
    return {**_write_settings({**settings, "columns": None}), "columns": columns}


def _write_choice(
    candidates: Asking | Mapping[str, Asking], k: int, counts: bool, offer: Offer
) -> dict[str, Any]:
    written = (
        {name: _question_text(one) for name, one in candidates.items()}
        if isinstance(candidates, Mapping)
        else _question_text(candidates)
    )
    return {"candidates": written, "k": k, "counts": counts, **offer.to_json()}


def _write_checks(checks: Checks, epsilon: Exact) -> dict[str, Any]:
    """Properties as JSON: exact numbers as texts, names and SQL as they are."""
    if isinstance(checks, str):
        return {"checks": checks, **_write_settings({"epsilon": epsilon})}
    written = {
        name: {
            part: list(value)
            if isinstance(value, list | tuple)
            else _write_settings({"": value})[""]
            for part, value in said.items()
        }
        for name, said in checks.items()
    }
    return {"checks": written, **_write_settings({"epsilon": epsilon})}


def _write_offers(offer: dict[str, Any]) -> dict[str, Any]:
    """One offer for all; or an accuracy for each, in the order of the questions."""
    within = offer.get("within")
    if not isinstance(within, list | tuple):
        return Offer.of(**offer).to_json()
    each = [Offer.of(**{**offer, "within": one}).to_json() for one in within]
    common = Offer.of(**{**offer, "within": 1}).to_json()
    return {**common, "within": [one.get("within") for one in each]}


def _list_texts(questions: Sequence[Asking]) -> list[str]:
    if isinstance(questions, str) or not questions:
        raise errors.InvalidParameter(
            "P4",
            f"{'one text' if isinstance(questions, str) else 'nothing'} is no list of questions.",
            why="what is asked together is priced together, at a known cost.",
            fix='ask_all(["SELECT COUNT(*) FROM a", "SELECT ..."], epsilon="0.1").',
        )
    return [_question_text(question) for question in questions]


def _question_text(question: Asking) -> str:
    if isinstance(question, str):
        return question
    from discreet.question.builder import Query
    from discreet.question.sql import write_question_text

    parsed = question.question() if isinstance(question, Query) else question
    return parsed.text or write_question_text(parsed)


# --- what comes back -----------------------------------------------------------------------------


def _read_response(read: Callable[[httpx.Response], T], response: httpx.Response) -> T:
    """What a response says; a proxy's page, or a server of another kind, says nothing."""
    try:
        return read(response)
    except _MISREAD:
        raise _strange() from None


def _pause_s(retry_after: str) -> float:
    """How long to wait before the next try; a date, or nonsense, is a second."""
    return min(_LONGEST_PAUSE_S, float(retry_after)) if retry_after.isdecimal() else 1.0


def _read_grants(response: httpx.Response) -> dict[str, str]:
    """The datasets that the key opens, and as whom."""
    opened = {str(one["name"]): str(one["analyst"]) for one in response.json()["datasets"]}
    if not opened:
        raise ValueError("a key that opens nothing is refused")
    return opened


def _choose_only(opened: Mapping[str, str]) -> str:
    if len(opened) == 1:
        return next(iter(opened))
    raise errors.InvalidParameter(
        "P4",
        f"the key opens {len(opened)} datasets, and none is named.",
        why="a question must go to the people it is about.",
        fix=f"connect(url, key=..., dataset={next(iter(opened))!r}).",
    )


def _read_declaration(response: httpx.Response) -> tuple[Schema, Budget]:
    from discreet.accounting.budget import Budget
    from discreet.question.schema import Schema

    found = response.json()
    return _read_recorded(found["schema"], Schema), _read_recorded(found["budget"], Budget)


def _read_recorded(shape: Any, kind: type[T]) -> T:
    from discreet.release import record

    value = record.from_json(shape)
    if not isinstance(value, kind):
        raise TypeError(f"a {kind.__name__} is expected")
    return value


def _read_asked(response: httpx.Response) -> Answer | str:
    """The answer, or the number of the job that finds it."""
    if response.status_code == 202:
        return str(response.json()["id"])
    if "Discreet-Answer" not in response.headers:  # what a release tells is no entry of an account
        from discreet.publication.told import Told

        told = Told.from_record(response.json()["Told"])
        return cast("Answer", told)  # a table of values, which is read as an answer is
    return _read_answer(response)


def _read_answer(response: httpx.Response) -> Answer:
    from discreet.release import record

    found = record.answer_from_bytes(response.content)
    number = int(response.headers["Discreet-Answer"])
    if not number:  # of a statement: its parts say which answers they are
        return found
    return found.number(number, replayed=response.headers["Discreet-Replayed"] == "true")


def _read_all(response: httpx.Response) -> list[Answer]:
    """The answers of questions that were asked together."""
    from discreet.exact.numbers import canonical_json
    from discreet.release import record

    found = response.json()
    number, replayed = int(found["id"]), bool(found["replayed"])
    answers = []
    for one in found["answers"]:
        answer = record.answer_from_bytes(canonical_json(one["answer"]).encode())
        said = tuple(map(str, one["said"]))
        answers.append(replace(answer.number(number, replayed=replayed), said=said))
    return answers


def _is_under_way(response: httpx.Response) -> bool:
    return response.json()["state"] in ("queued", "running")


def _read_quote(response: httpx.Response) -> Quote:
    from discreet.accounting.loss import Loss
    from discreet.curate.quote import Choice, Quote
    from discreet.release.explanation import Explanation

    found = response.json()
    refusal = None if found["refusal"] is None else _parse_refusal(found["refusal"], "")
    difference = found.get("difference")
    return Quote(
        _read_recorded(found["explanation"], Explanation),
        str(found["outcome"]),
        refusal,
        tuple(
            Choice(Loss.from_units(*charge), tuple((str(n), m) for n, m in margins), str(source))
            for charge, margins, source in found.get("choices", ())
        ),
        None if difference is None else Loss.from_units(*difference),
    )


def _read_balance(response: httpx.Response) -> RemoteBalance:
    shape = response.json()
    whose = shape["analyst"] or shape["dataset"]
    return RemoteBalance(_parse_loss(whose["spent"]), str(shape["text"]), shape)


def _read_page(response: httpx.Response) -> tuple[list[Entry], str | None]:
    """Lines of the transcript, and where the next ones begin."""
    found = response.json()
    return [_parse_entry(shape) for shape in found["entries"]], found["next"]


def _read_refusal(response: httpx.Response, body: Mapping[str, Any] | None) -> Refusal:
    try:
        return _parse_refusal(response.json(), str((body or {}).get("question", "")))
    except _MISREAD:
        return _strange()


def _parse_refusal(shape: Mapping[str, Any], question: str) -> Refusal:
    """The refusal that the server sent, as the curator would have raised it."""
    code = shape["code"] if shape["code"] in CODES else "A18"
    if code == "A10":  # it was sent, whatever the server says of that
        return _no_key("the key that was given opens nothing here.")
    span = shape.get("place")
    kind = _FAMILIES[code[0]]
    return kind(
        code,
        str(shape["what"]),
        why=str(shape["why"]),
        fix=str(shape["fix"]),
        span=None if not span else Span(question, *span),
        rewriting=None if shape.get("rewriting") is None else str(shape["rewriting"]),
        offer={str(name): str(amount) for name, amount in dict(shape.get("offer") or {}).items()},
        declaration=None if shape.get("declaration") is None else str(shape["declaration"]),
    ).translate("python", heard="http")


def _no_key(what: str) -> AccessRefusal:
    """What is said of a key that opens nothing, in the words of Python; it is never quoted."""
    return AccessRefusal(
        "A10",
        what,
        why="what has been lost about the people in the data is counted for each who asks.",
        fix='pass the whole key as it was shown when it was made: key="discreet_…", which goes on '
        "with 16 digits or letters, an underscore and 64 more. A lost key is not shown again: ask "
        "the curator for a new one.",
    )


def _unreachable() -> AccessRefusal:
    return AccessRefusal(
        "A17",
        "the server cannot be reached.",
        why="a question that was charged is not charged again: ask it again.",
        fix="check the address, the network and the server's log.",
    )


def _strange() -> AccessRefusal:
    return AccessRefusal(
        "A17",
        "what came back is not what this version of discreet says.",
        why="a question that was charged is not charged again: ask it again.",
        fix="check the address, what stands between (a proxy?), and the server's version.",
    )


def _parse_entry(shape: Mapping[str, Any]) -> Entry:
    from discreet.ledger.charges import Entry, State

    return Entry(
        int(shape["id"]),
        datetime.fromisoformat(shape["at"]),
        shape["analyst"],
        shape["question"],
        shape["spend"],
        None if shape["price"] is None else _parse_loss(shape["price"]),
        State(shape["state"]),
        shape["code"] or "",
        shape.get("count", 1),
    )


def _parse_loss(shape: Mapping[str, Any]) -> Loss:
    from discreet.accounting.loss import INFINITY, Loss

    epsilon, rho = (
        INFINITY if shape[name] is None else Fraction(shape[name]) for name in ("epsilon", "rho")
    )
    return Loss(epsilon, rho, Fraction(shape["delta"]))
