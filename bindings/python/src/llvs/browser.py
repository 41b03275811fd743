"""Opens the user's browser at an address that holds a secret.

Other users of the machine read the arguments of every process (`/proc/PID/cmdline`), and a browser gets its address as one. So the browser
gets the name of a file that only this user may read, and the file redirects it.
"""

from __future__ import annotations

import atexit
import html
import os
import shutil
import tempfile
import threading
import webbrowser
from pathlib import Path

__all__ = ["open_address"]

#: Seconds after which the file is deleted: a slow browser has read it by then.
KEPT = 120.0

_PAGE = """<!DOCTYPE html>
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={address}">
<title>Opening</title>
<p><a href="{address}" rel="noreferrer">Continue</a></p>
"""


def open_address(address: str) -> None:
    """Opens the user's browser at an address, which is in no argument of a process. Returns at once: some browsers run until they end.

    The address is in a file with mode 0600, in a new folder with mode 0700. Both are deleted after two minutes, or when the process ends.
    A browser that may not read the folder of temporary files (in a sandbox, say) shows an error: print the address for the user as well.
    Raises OSError if the file cannot be written.
    """
    page = _write(address)
    threading.Thread(target=webbrowser.open, args=(page.as_uri(),), name="llvs browser", daemon=True).start()


def _write(address: str) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="llvs-open-", dir=_place()))
    page = folder / "open.html"

    def remove() -> None:
        atexit.unregister(remove)
        shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)
    try:
        with open(os.open(page, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "w", encoding="utf-8") as file:
            file.write(_PAGE.format(address=html.escape(address, quote=True)))
    except BaseException:
        remove()
        raise
    timer = threading.Timer(KEPT, remove)
    timer.daemon = True
    timer.start()
    return page


def _place() -> str:
    """The user's own folder for running programs if there is one, else the one for temporary files."""
    own = os.environ.get("XDG_RUNTIME_DIR", "")
    return own if own and os.path.isdir(own) and os.access(own, os.W_OK) else tempfile.gettempdir()
