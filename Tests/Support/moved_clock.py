"""A clock of the library that tests move: clock.c hooks the loaded library. The clock of Python remains the real one."""

from __future__ import annotations

import atexit
import ctypes
import functools
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from patience import eventually

#: The factor by which `hurry` shortens sleeps. A library that polls something real still waits for seconds.
FACTOR = 20


@functools.cache
def _hooked() -> ctypes.CDLL:
    import llvs

    path = os.environ.get("LLVS_TEST_CLOCK", "")
    if not os.path.exists(path):
        folder = tempfile.mkdtemp(prefix="llvs-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        path = os.path.join(folder, "clock.so")
        source = Path(__file__).resolve().with_name("clock.c")
        subprocess.run(["cc", "-O1", "-Wall", "-Werror", "-shared", "-fPIC", "-o", path, str(source)], check=True)
        # Child processes of this one use the same library.
        os.environ["LLVS_TEST_CLOCK"] = path
    made = ctypes.CDLL(path)
    made.clock_advance.argtypes, made.clock_advance.restype = [ctypes.c_double], None
    made.clock_hurry.argtypes, made.clock_hurry.restype = [ctypes.c_int], None
    made.clock_watch.argtypes, made.clock_watch.restype = [ctypes.c_int], None
    made.clock_freeze.argtypes, made.clock_freeze.restype = [ctypes.c_int], None
    made.clock_now.restype = ctypes.c_double
    made.clock_hook.argtypes = [ctypes.c_void_p]
    hooked = made.clock_hook(ctypes.cast(llvs._lib.raw("llvs_store_open"), ctypes.c_void_p))
    # Hook all functions: a wait that is not hooked would not notice that the clock was moved.
    assert hooked == 4, f"{hooked} of 4 functions of the library were hooked"
    return made


#: For scripts that tests run in processes of their own, with the path of this module.
HURRIES = "from moved_clock import MovedClock\nMovedClock().hurry()\n"


class MovedClock:
    """Waits of the library that begin from now on notice within milliseconds that the clock was moved. Waits that began before do not."""

    def __init__(self) -> None:
        self._clock = _hooked()
        self._clock.clock_watch(1)

    def advance(self, seconds: float, waiting: int = 0) -> None:
        """Moves the clock ahead. With `waiting`: when this number of threads wait, and until they wait again, so that each of them has
        looked at the clock."""
        if waiting:
            eventually(lambda: self._clock.clock_waiting() >= waiting)
        self._clock.clock_advance(seconds)
        if waiting:
            eventually(lambda: self._clock.clock_waiting() >= waiting)

    def freeze(self, stands: bool = True) -> None:
        """Stops the clock, except for `advance`, or lets it run again."""
        self._clock.clock_freeze(stands)

    def hurry(self, factor: int = FACTOR) -> None:
        """Divides the time of sleeps between retries by a factor; the clock advances as if they had taken their full time. 1: the full
        time."""
        self._clock.clock_hurry(factor)

    def close(self) -> None:
        """Restores the real clock."""
        self.freeze(False)
        self.hurry(1)
        self._clock.clock_watch(0)

    def now(self) -> float:
        return float(self._clock.clock_now())
