"""For programs that contain the inspector: adds the files of its page."""

from __future__ import annotations

from pathlib import Path

INSPECTOR = Path(__file__).resolve().parents[1] / "inspector"

datas = [
    (str(path), str(Path("llvs", "inspector", path.parent.relative_to(INSPECTOR))))
    for path in sorted(INSPECTOR.rglob("*"))
    if path.suffix in (".html", ".css", ".js")
]
