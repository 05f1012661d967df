"""What is built holds what is needed."""

from __future__ import annotations

import zipfile
from pathlib import Path

from hatchling.builders.wheel import WheelBuilder

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src"


def test_the_wheel_holds_the_whole_package(tmp_path):
    """Every module, the page's files, the mark that it is typed; and nothing else."""
    (built,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    with zipfile.ZipFile(built) as wheel:
        held = {name for name in wheel.namelist() if ".dist-info/" not in name}
        commands = next(n for n in wheel.namelist() if n.endswith("entry_points.txt"))
        assert b"discreet = discreet.cli:main" in wheel.read(commands)
    files = (path for path in (SOURCE / "discreet").rglob("*") if path.is_file())
    wanted = {str(path.relative_to(SOURCE)) for path in files if path.suffix != ".pyc"}
    assert held == wanted
    assert {"discreet/py.typed", "discreet/server/static/index.html"} <= held
