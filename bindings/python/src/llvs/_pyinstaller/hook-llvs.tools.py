"""For programs that contain the command: adds the modules of its commands, which it imports by name."""

from __future__ import annotations

from pathlib import Path

TOOLS = Path(__file__).resolve().parents[1] / "tools"

hiddenimports = [f"llvs.tools.{path.stem}" for path in sorted(TOOLS.glob("*.py")) if not path.stem.startswith("__")]
