"""`llvs inspect`: the store in a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Optional

import click

from . import HOW_TO_INSTALL
from .failures import MISUSED, STORE, Failure
from .session import find_store, session


@click.command("inspect")
@click.argument("store", required=False, type=click.Path(path_type=Path))
@click.option("--no-open", is_flag=True, help="Print the address only, and open no browser.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, metavar="PORT", help="The port on 127.0.0.1; else one that is free.")
@click.option("--write", is_flag=True, help="Allow choosing, editing, reverting and undoing.")
def inspect_command(store: Optional[Path], no_open: bool, port: int, write: bool) -> None:
    """Show the store, or the one at STORE, in the browser, until Ctrl-C."""
    path, _ = session().place() if store is None else find_store(str(store))
    try:
        from llvs.inspector.serving import NotServedError, serve
    except ImportError as missing:
        raise Failure(f"the inspector needs the package {missing.name}, which is not installed: {HOW_TO_INSTALL}", MISUSED) from None
    try:
        serve(str(path), port=port, write=write, open_browser=not no_open)
    except NotServedError as problem:
        raise Failure(str(problem), STORE) from problem
