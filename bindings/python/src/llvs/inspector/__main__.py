"""`python -m llvs.inspector STORE`: serves the inspector of a store until it is interrupted."""

from __future__ import annotations

import argparse
import sys
from typing import Optional, Sequence

import llvs

from ..tools import escape
from .serving import NotServedError, serve


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Reads the arguments, and serves. Returns the exit code: 0 done, 2 wrong arguments, 3 the store cannot be opened."""
    parser = argparse.ArgumentParser(prog="python -m llvs.inspector", description="Shows a store in the browser.")
    parser.add_argument("store", metavar="STORE", help="the directory of the store, or its file in SQLite")
    parser.add_argument("--no-open", action="store_true", help="print the address only, and open no browser")
    parser.add_argument("--port", type=int, default=0, help="the port on 127.0.0.1; 0, the default, takes one that is free")
    parser.add_argument("--write", action="store_true", help="allow choosing, editing, reverting and undoing; else the store is only read")
    given = parser.parse_args(arguments)
    if not 0 <= given.port <= 65535:
        parser.error(f"{given.port} is no port: use a number from 0 to 65535")
    try:
        serve(given.store, port=given.port, write=given.write, open_browser=not given.no_open)
    except (llvs.Error, NotServedError) as problem:
        print(escape.line(str(problem)), file=sys.stderr)
        return 3
    except KeyboardInterrupt:
        pass
    return 0


if __name__ == "__main__":
    sys.exit(main())
