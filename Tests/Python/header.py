"""The declarations of the headers, as scripts/lib/read_header.py reads them."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts/lib"))

from read_header import Function, Header, Parameter, read_header

__all__ = ["Function", "Header", "Parameter", "read_header"]
