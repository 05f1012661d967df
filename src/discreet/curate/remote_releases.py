"""Releases behind a server, with the methods of those in this process."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote

from discreet.exact.numbers import Exact

# What plans and folders are read with is imported when the first of them is: whoever connects to
# ask needs none of it.
if TYPE_CHECKING:
    import httpx

    from discreet.curate.remote import Remote
    from discreet.publication.agenda import Given as Plan


class RemoteReleases:
    """The releases of a dataset behind a server: planned, made, asked, and handed over."""

    @property
    def _remote(self) -> Remote:
        return cast("Remote", self)  # nobody else has them

    def releases(self) -> list[Mapping[str, Any]]:
        """The releases of the dataset, as they are sent: each can be asked for free."""
        return list(self._fetch("")["releases"])

    def plan_release(
        self, name: str, *, kind: str = "synthetic", of: str, **settings: Any
    ) -> Mapping[str, Any]:
        """What the release ``name`` would count and cost, stage by stage, as it is sent; free.

        ``kind``, ``of`` and ``settings`` are those of :meth:`Curator.make_release`.
        """
        return self._submit("/plan", _declare(name, kind, of, settings))

    def make_release(
        self, name: str, *, kind: str = "synthetic", of: str, **settings: Any
    ) -> Mapping[str, Any]:
        """Charge and make the release ``name``, as a curator; its certificate.

        ``kind``, ``of`` and ``settings`` are those of :meth:`Curator.make_release`.
        """
        return self._submit("", _declare(name, kind, of, settings))

    def plan_releases(self, plan: Plan) -> Mapping[str, Any]:
        """Divide the price of a release ``plan`` best, or find the least for its targets; free.

        The plan is that of :meth:`Curator.plan_releases`, read here; the division, with both
        curves, as it is sent.
        """
        from discreet.publication.agenda import read_agenda

        return self._submit("/plan_all", read_agenda(plan).to_json())

    def make_releases(
        self, plan: Plan, *, folder: str | os.PathLike[str] | None = None
    ) -> list[Mapping[str, Any]]:
        """Publish all that a release ``plan`` names, as a curator, for one charge.

        Their certificates.  The plan is that of :meth:`plan_releases`; sent again it goes on where
        it stopped, and costs nothing more.  With a ``folder``, all of it is there afterwards, to
        be handed over, with an index and checksums.
        """
        from discreet.publication.agenda import read_agenda
        from discreet.publication.handover import check_place

        agenda = read_agenda(plan)
        if folder is not None:
            check_place(Path(folder))  # before anything is paid
        made = self._remote._compute("releases/make_all", agenda.to_json())["releases"]
        if folder is not None:
            self.hand_over_releases([item.declared.name for item in agenda.items], folder)
        return list(made)

    def plan(
        self, questions: Sequence[str], *, name: str, of: str, **price: Any
    ) -> Mapping[str, Any]:
        """Charge for many linear ``questions``, and answer them together, as one release.

        Its certificate; ``name``, ``of`` and ``price`` are those of :meth:`Curator.plan`.  What it
        would cost says ``plan_release(name, kind="questions", questions=[...], ...)``, for free.
        """
        return self.make_release(name, kind="questions", of=of, questions=list(questions), **price)

    def step_release(self, name: str, *, number: int | None = None) -> Mapping[str, Any]:
        """Publish the next step of the counter ``name``, as a curator; its certificate.

        With ``number``, which step it is, a second try publishes no other one.
        """
        return self._submit(f"{_name(name)}/step", {"number": number})

    def ask_release(
        self, name: str, question: str, *, confidence: Exact = "0.95"
    ) -> Mapping[str, Any]:
        """What the release ``name`` says to ``question``, a SELECT, at ``confidence``; free."""
        body = {"question": question, "confidence": str(confidence)}
        return self._submit(f"{_name(name)}/ask", body)

    def show_card(self, name: str) -> str:
        """What the release ``name`` is and promises, in words; free."""
        return str(self._fetch(f"{_name(name)}/card")["card"])

    def show_certificate(self, name: str) -> Mapping[str, Any]:
        """What the release ``name`` was declared to be, promises and was charged; free."""
        return self._fetch(_name(name))

    def hand_over_release(self, name: str, folder: str | os.PathLike[str]) -> Path:
        """Write the release ``name`` to ``folder``, to be handed over; all of it or nothing.

        In it are data, measurements, certificate, card, report and checksums.
        """
        from discreet.publication.packing import check_release_place, unpack_folder

        place = Path(folder)
        check_release_place(place)
        content = self._remote._connection.get(self._place(f"{_name(name)}/folder"), _read_bytes)
        return unpack_folder(content, place)

    def hand_over_releases(self, names: Sequence[str], folder: str | os.PathLike[str]) -> Path:
        """Write the releases ``names`` to one ``folder``, as a curator, with an index."""
        from discreet.publication.handover import check_place
        from discreet.publication.packing import unpack_folder

        place = Path(folder)
        check_place(place)
        body = {"releases": [names] if isinstance(names, str) else list(names)}
        content = self._remote._connection.post(self._place("/folder"), _read_bytes, body)
        return unpack_folder(content, place)

    def _place(self, rest: str) -> str:
        return f"{self._remote._path}/releases{rest}"

    def _fetch(self, rest: str) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self._remote._connection.send("GET", self._place(rest), None)
        return found

    def _submit(self, rest: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        return self._remote._post(f"releases{rest}", body)


def _name(name: str) -> str:
    return f"/{quote(name, safe='')}"


def _declare(name: str, kind: str, of: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """A release as it is sent."""
    return {"name": name, "kind": kind, "of": of, "settings": _plain(settings)}


def _plain(value: Any) -> Any:
    """Settings as JSON: exact numbers as texts, wherever they stand."""
    if isinstance(value, Mapping):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return str(value) if isinstance(value, Fraction | Decimal) else value


def _read_bytes(response: httpx.Response) -> bytes:
    return response.content


__all__ = ["RemoteReleases"]
