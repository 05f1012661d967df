"""A curator behind a server, with the methods of one in this process.

    clinic = discreet.connect("https://clinic.example", key="discreet_...")
    clinic.ask("SELECT COUNT(*) AS n FROM visits", epsilon="0.1")

Answers and explanations are the same objects: values, margins at any confidence
and certificates are computed here, from what the server released.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from fractions import Fraction
from types import TracebackType
from typing import Any
from urllib.parse import quote, urlsplit

import httpx

from discreet import errors, record
from discreet.access import is_loopback
from discreet.answer import Answer
from discreet.budget import Budget
from discreet.builder import Asked, Rows, table
from discreet.curate import Asking, Quote, Within
from discreet.entropy import random_bytes
from discreet.errors import CODES, AccessRefusal, Place, Refusal
from discreet.exact import Exact
from discreet.explanation import Explanation
from discreet.ledger import Entry, State
from discreet.loss import INFINITY, Loss
from discreet.schema import Schema
from discreet.sql import question_text

RECORD = "application/vnd.discreet+json"
_TRIES = 4
_PAUSE_S = 0.5
_WAIT_S = 20.0
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

    A key is not sent to another machine without TLS, unless ``insecure``.
    ``options`` go to the HTTP client (``verify=`` for a certificate of your own).
    """
    where = urlsplit(url)
    if where.scheme != "https" and not insecure and not is_loopback(where.hostname or ""):
        raise AccessRefusal(
            "A19",
            "the address leads to another machine, and there is no TLS.",
            why="whoever reads a key on the way can spend what the people in the data may lose.",
            fix="connect to https://..., or say insecure=True.",
        )
    client = httpx.Client(
        base_url=url.rstrip("/"),
        headers={"Authorization": f"Bearer {key}"},
        timeout=timeout_s,
        **options,
    )
    try:
        return Remote(_Line(client), dataset)
    except BaseException:
        client.close()
        raise


@dataclass(frozen=True, slots=True)
class RemoteBalance:
    """What is left, as the server says it."""

    shape: Mapping[str, Any]

    @property
    def spent(self) -> Loss:
        """What was lost in the block that lost most."""
        return _loss(self.shape["analyst" if self.shape["analyst"] else "dataset"]["spent"])

    def __str__(self) -> str:
        return str(self.shape["text"])


class Remote:
    """The curator of one dataset, on a server."""

    def __init__(self, line: _Line, dataset: str | None) -> None:
        self._line = line
        self.dataset = dataset or line.only_dataset()
        self._path = f"/v1/datasets/{quote(self.dataset, safe='')}"
        declared = json.loads(line.get(self._path, accept=RECORD).content)
        self.schema: Schema = record.from_json(declared["schema"])
        self.budget: Budget = record.from_json(declared["budget"])
        self.analyst: str = declared["analyst"]

    # --- asking ------------------------------------------------------------------------------

    def ask(
        self,
        question: Asking,
        *,
        epsilon: Exact | None = None,
        rho: Exact | None = None,
        delta: Exact | None = None,
        within: Within | None = None,
        confidence: Exact = "0.95",
    ) -> Answer | Explanation:
        """Answer, or refuse before the data is touched; a lost connection is tried again, free."""
        text = _text(question)
        if text.split(None, 1)[:1] and text.split(None, 1)[0].upper() == "EXPLAIN":
            return self.explain(
                text, epsilon=epsilon, rho=rho, delta=delta, within=within, confidence=confidence
            )
        body = _body(text, epsilon, rho, delta, within, confidence)
        headers = {"Idempotency-Key": random_bytes(16).hex()}
        path = f"{self._path}/ask"
        while True:
            response = self._line.post(path, {**body, "wait_s": _WAIT_S}, headers=headers)
            if response.status_code != 202:
                return _answer(response)
            self._wait(response.json()["id"])

    def _wait(self, number: str) -> None:
        """Until the job has ended; then the same request is answered at once, and free."""
        while True:
            path = f"{self._path}/jobs/{number}?wait_s={_WAIT_S:g}"
            state = self._line.get(path).json()["state"]
            if state not in ("queued", "running"):
                return

    def explain(
        self,
        question: Asking,
        *,
        epsilon: Exact | None = None,
        rho: Exact | None = None,
        delta: Exact | None = None,
        within: Within | None = None,
        confidence: Exact = "0.95",
    ) -> Explanation:
        """What the question would cost and how good its answer would be; free."""
        return self.price(
            question, epsilon=epsilon, rho=rho, delta=delta, within=within, confidence=confidence
        ).explanation

    def price(
        self,
        question: Asking,
        *,
        epsilon: Exact | None = None,
        rho: Exact | None = None,
        delta: Exact | None = None,
        within: Within | None = None,
        confidence: Exact = "0.95",
    ) -> Quote:
        """What the question would cost now, and whether the account would pay."""
        body = _body(_text(question), epsilon, rho, delta, within, confidence)
        found = json.loads(self._line.post(f"{self._path}/explain", body).content)
        explanation = record.from_json(found["explanation"])
        refusal = None if found["refusal"] is None else _refusal(found["refusal"], "")
        return Quote(explanation, found["outcome"], refusal)

    def table(self, name: str, *, alias: str | None = None) -> Rows:
        """The rows of a table, to build a question in Python; nothing is read before asking."""
        return table(name, self.schema, alias=alias)

    def answer(self, number: int) -> Answer:
        """An answer that was paid for; free."""
        return _answer(self._line.get(f"{self._path}/answers/{number}", accept=RECORD))

    # --- the account ---------------------------------------------------------------------------

    def balance(self, analyst: str | None = None) -> RemoteBalance:
        """What is left, of the dataset or of an analyst's allocation; ``str`` says it in words."""
        named = "" if analyst is None else f"?analyst={quote(analyst, safe='')}"
        return RemoteBalance(self._line.get(f"{self._path}/balance{named}").json())

    @property
    def spent(self) -> Loss:
        """What has been charged so far."""
        return self.balance().spent

    def transcript(self, analyst: str | None = None) -> tuple[Entry, ...]:
        """Every charge and refusal that the key may see, in order."""
        named = "" if analyst is None else f"&analyst={quote(analyst, safe='')}"
        found: list[Entry] = []
        before = ""
        while True:
            page = self._line.get(f"{self._path}/transcript?limit=1000{named}{before}").json()
            found += [_entry(shape) for shape in page["entries"]]
            if page["next"] is None:
                return tuple(reversed(found))
            before = f"&before={page['next']}"

    # --- the end -------------------------------------------------------------------------------

    def close(self) -> None:
        """Let go of the connection."""
        self._line.close()

    def __enter__(self) -> Remote:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


class _Line:
    """Requests to one server: refusals raised, what can be tried again tried again."""

    def __init__(self, client: httpx.Client) -> None:
        self._client = client

    def only_dataset(self) -> str:
        names = [one["name"] for one in self.get("/v1/me").json()["datasets"]]
        if len(names) == 1:
            return str(names[0])
        raise errors.InvalidParameter(
            "P4",
            f"the key opens {len(names)} datasets, and none is named.",
            why="a question must go to the people it is about.",
            fix=f"connect(url, key=..., dataset={names[0]!r}).",
        )

    def get(self, path: str, *, accept: str = "application/json") -> httpx.Response:
        return self._sent("GET", path, None, {"Accept": accept})

    def post(
        self, path: str, body: Mapping[str, Any], *, headers: Mapping[str, str] | None = None
    ) -> httpx.Response:
        return self._sent("POST", path, body, {"Accept": RECORD, **(headers or {})})

    def _sent(
        self, method: str, path: str, body: Mapping[str, Any] | None, headers: dict[str, str]
    ) -> httpx.Response:
        for attempt in range(_TRIES):
            last = attempt == _TRIES - 1
            try:
                response = self._client.request(method, path, json=body, headers=headers)
            except httpx.TransportError:
                if last:
                    raise _unreachable() from None
                time.sleep(_PAUSE_S * 2**attempt)
                continue
            if response.status_code == 429 and not last:
                time.sleep(min(10.0, float(response.headers.get("Retry-After", "1"))))
                continue
            if response.is_success:
                return response
            raise _refused(response, body)
        raise _unreachable()

    def close(self) -> None:
        self._client.close()


# --- what is sent ------------------------------------------------------------------------------


def _text(question: Asking) -> str:
    if isinstance(question, str):
        return question
    parsed = question.question() if isinstance(question, Asked) else question
    return parsed.text or question_text(parsed)


def _body(
    text: str,
    epsilon: Exact | None,
    rho: Exact | None,
    delta: Exact | None,
    within: Within | None,
    confidence: Exact,
) -> dict[str, Any]:
    margins = (
        {name: _exact(margin) for name, margin in within.items()}
        if isinstance(within, Mapping)
        else _exact(within)
    )
    return {
        "question": text,
        "epsilon": _exact(epsilon),
        "rho": _exact(rho),
        "delta": _exact(delta),
        "within": margins,
        "confidence": _exact(confidence),
    }


def _exact(value: Exact | None) -> str | int | None:
    """A number as text, so that nothing is rounded on the way."""
    return value if value is None or isinstance(value, int) else str(value)


# --- what comes back -----------------------------------------------------------------------------


def _answer(response: httpx.Response) -> Answer:
    return replace(
        record.answer_from_bytes(response.content),
        id=int(response.headers["Discreet-Answer"]),
        replayed=response.headers["Discreet-Replayed"] == "true",
    )


def _refused(response: httpx.Response, body: Mapping[str, Any] | None) -> Refusal:
    try:
        return _refusal(response.json(), str((body or {}).get("question", "")))
    except (ValueError, KeyError, TypeError):
        return _unreachable()


def _refusal(shape: Mapping[str, Any], question: str) -> Refusal:
    """The refusal that the server sent, as the curator would have raised it."""
    code = shape["code"] if shape["code"] in CODES else "A18"
    place = shape.get("place")
    kind = _FAMILIES[code[0]]
    return kind(
        code,
        str(shape["what"]),
        why=str(shape["why"]),
        fix=str(shape["fix"]),
        place=None if not place else Place(question, *place),
    )


def _unreachable() -> AccessRefusal:
    return AccessRefusal(
        "A17",
        "the server cannot be reached, or does not speak as expected.",
        why="a question that was charged is not charged again: ask it again.",
        fix="check the address, the network and the server's log.",
    )


def _entry(shape: Mapping[str, Any]) -> Entry:
    return Entry(
        int(shape["id"]),
        datetime.fromisoformat(shape["at"]),
        shape["analyst"],
        shape["question"],
        shape["spend"],
        None if shape["price"] is None else _loss(shape["price"]),
        State(shape["state"]),
        shape["code"] or "",
    )


def _loss(shape: Mapping[str, Any]) -> Loss:
    return Loss(_amount(shape["epsilon"]), _amount(shape["rho"]), Fraction(shape["delta"]))


def _amount(text: str | None) -> Any:
    return INFINITY if text is None else Fraction(text)
