"""Installs what the tests need beside Python: PostgreSQL, Chromium, Java, Node.js, TypeScript, gcc.

``python tests/components.py`` installs what is missing, from Debian, when it is run by root.
Anybody else is told what to ask for, and the tests that need it are skipped; under ``CI=true``
nothing may be skipped, so a missing component is an error.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

POSTGRES_HOMES = "/usr/lib/postgresql"
"""Where Debian keeps the server's programs, one directory for each version."""


@dataclass(frozen=True, slots=True)
class Component:
    """A program that is not a Python package, and the Debian packages that bring it."""

    purpose: str
    packages: tuple[str, ...]
    find: Callable[[], Path | None]


def postgres_programs() -> Path | None:
    """The directory with ``initdb`` and ``postgres``: the newest of Debian's, or the PATH's."""
    homes = sorted(Path(POSTGRES_HOMES).glob("*/bin/initdb"), key=_version, reverse=True)
    found = [home.parent for home in homes if (home.parent / "postgres").exists()]
    if found:
        return found[0]
    on_path = shutil.which("initdb")
    programs = None if on_path is None else Path(on_path).resolve().parent
    return programs if programs is not None and (programs / "postgres").exists() else None


def chromium() -> Path | None:
    """The browser that the page is tested with; without windows of its own it is much quicker."""
    names = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
    return next((Path(found) for name in names if (found := shutil.which(name))), None)


def node() -> Path | None:
    """What runs the scripts of pages without a browser."""
    found = shutil.which("node") or shutil.which("nodejs")
    return Path(found) if found else None


def typescript() -> Path | None:
    """What checks the types of the page's scripts."""
    found = shutil.which("tsc")
    return Path(found) if found else None


def jdbc() -> Path | None:
    """PostgreSQL's driver for Java, if there is a Java that compiles."""
    driver = Path("/usr/share/java/postgresql.jar")
    return driver if driver.exists() and shutil.which("javac") else None


def java() -> Path | None:
    """What runs Spark."""
    found = shutil.which("java")
    return Path(found) if found else None


def compiler() -> Path | None:
    """A C compiler that works, for the disk that fails on purpose."""
    found = shutil.which("cc") or shutil.which("gcc")
    headers = ("/usr/include/stdio.h", "/usr/include/x86_64-linux-gnu/stdio.h")
    return Path(found) if found and any(Path(header).exists() for header in headers) else None


COMPONENTS: Mapping[str, Component] = {
    "postgres": Component("the account on PostgreSQL", ("postgresql",), postgres_programs),
    "chromium": Component(
        "the page in a real browser", ("chromium-headless-shell", "fonts-dejavu"), chromium
    ),
    "jdbc": Component(
        "PostgreSQL's protocol by Java's driver",
        ("default-jdk-headless", "libpostgresql-jdbc-java"),
        jdbc,
    ),
    "java": Component("Spark as an engine", ("default-jre-headless",), java),
    "node": Component("the scripts of the pages beside Python", ("nodejs",), node),
    "typescript": Component("the types of the page", ("node-typescript",), typescript),
    "compiler": Component("the disk that fails on purpose", ("gcc", "libc6-dev"), compiler),
}


def in_ci() -> bool:
    """Whether nothing may be skipped."""
    return os.environ.get("CI", "").lower() in {"1", "true", "yes"}


def missing() -> dict[str, Component]:
    """The components that this machine lacks."""
    return {name: one for name, one in COMPONENTS.items() if one.find() is None}


def install(packages: tuple[str, ...]) -> None:
    """Install Debian packages without a question and without starting a service."""
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    options = ["-qq", "-o", "Dpkg::Use-Pty=0", "-o", "Acquire::Retries=3"]
    steps = (["update"], ["install", "--yes", "--no-install-recommends", *packages])
    for step in steps:
        subprocess.run(
            ["apt-get", *options, *step], check=True, env=quiet, stdin=subprocess.DEVNULL
        )


def main() -> int:
    """Install what is missing; the exit code says whether the tests may go on."""
    wanted = missing()
    packages = tuple(name for one in wanted.values() for name in one.packages)
    if wanted and os.geteuid() == 0 and shutil.which("apt-get"):
        print("installing", ", ".join(packages))
        try:
            install(packages)
        except subprocess.CalledProcessError as failure:
            print(f"apt-get failed with {failure.returncode}", file=sys.stderr)
    still = missing()
    for one in still.values():
        names = " ".join(one.packages)
        print(f"not tested here: {one.purpose} (install {names})", file=sys.stderr)
    if still and in_ci():
        print("CI=true: nothing may be skipped", file=sys.stderr)
        return 1
    return 0


def _version(program: Path) -> int:
    name = program.parent.parent.name
    return int(name) if name.isdigit() else -1


if __name__ == "__main__":
    sys.exit(main())
