"""These tests go by modules that lie beside them, made from docs/live-protocol.md; those of them that need the library say so."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
