"""Run the notebooks of this folder in a real kernel and keep what they show."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
sys.path.insert(0, str(FOLDER / "lab"))

from make import shown  # noqa: E402 (of the lab's notebooks, which are kept alike)


def run_notebook(path: Path, client: Any) -> dict[str, Any]:
    """The notebook with what each of its cells shows now; an error ends it."""
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    codes = [cell for cell in found["cells"] if cell["cell_type"] == "code"]
    for count, cell in enumerate(codes, start=1):
        outputs: list[dict[str, Any]] = []

        def keep(message: dict[str, Any], outputs: list[dict[str, Any]] = outputs) -> None:
            output = shown(message)
            if output is not None:
                outputs.append(output)

        client.execute_interactive("".join(cell["source"]), output_hook=keep, timeout=600)
        cell["outputs"], cell["execution_count"] = outputs, count
    return found


def main() -> None:
    """Write each notebook anew."""
    from jupyter_client.manager import start_new_kernel

    for path in sorted(FOLDER.glob("*.ipynb")):
        with tempfile.TemporaryDirectory() as home:
            manager, client = start_new_kernel(kernel_name="python3", cwd=home)
            try:
                made = run_notebook(path, client)
            finally:
                client.stop_channels()
                manager.shutdown_kernel(now=True)
        text = json.dumps(made, indent=1, ensure_ascii=False) + "\n"
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
