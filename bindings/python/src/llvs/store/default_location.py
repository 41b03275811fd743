"""Where the stores of applications belong on this platform."""

from __future__ import annotations

import os
import sys

from .. import errors
from .._abi.memory import encode


def default_path(application: str) -> str:
    """Returns the usual path of an application's store on this platform: `$XDG_DATA_HOME/<name>/store.llvs` on Linux. Creates nothing.

    Raises InvalidArgumentError for what cannot be the name of a directory, NotFoundError where there is no home directory.
    """
    encode(application)
    if application in ("", ".", "..") or "/" in application or "\0" in application:
        raise errors.InvalidArgumentError(
            f"{application!r} cannot be the name of a directory; give a name without slashes and NULs that is not '.' or '..'"
        )
    # The specification wants relative values ignored.
    base = os.environ.get("XDG_DATA_HOME", "") if sys.platform != "darwin" else ""
    if not base.startswith("/"):
        home = os.environ.get("HOME", "")
        if not home:
            raise errors.NotFoundError(
                f"there is no home directory to keep the store of {application!r} in; set HOME or XDG_DATA_HOME, or give a path"
            )
        base = home + ("/Library/Application Support" if sys.platform == "darwin" else "/.local/share")
    return f"{base}/{application}/store.llvs"
