"""Progress bars on standard error if that is a terminal: how much is done, how fast, and the time that is left."""

from __future__ import annotations

import contextlib
import sys
from typing import Iterator, Optional

import llvs

_STAGES = {
    llvs.control.Stage.LISTING: "listing",
    llvs.control.Stage.RECEIVING: "receiving",
    llvs.control.Stage.ADDING: "adding",
    llvs.control.Stage.SENDING: "sending",
    llvs.control.Stage.READING: "reading",
    llvs.control.Stage.WRITING: "writing",
    llvs.control.Stage.VERIFYING: "verifying",
}


@contextlib.contextmanager
def shown() -> Iterator[Optional[llvs.control.ProgressCallback]]:
    """Returns the `progress` of a call; None if standard error is not a terminal. The bar is removed when the block ends."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

    rate = TextColumn("{task.fields[rate]}")
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), rate, TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        tasks: list[TaskID] = []
        last: Optional[llvs.control.Progress] = None

        def hear(progress: llvs.control.Progress) -> None:
            nonlocal last
            if not progress.completed and not progress.total:
                return  # there is nothing to count yet
            # A stage may count several things in turn (bytes, then versions). Each gets a bar of its own, so that the rate is right.
            is_another = last is None or (last.stage, last.total) != (progress.stage, progress.total) or last.completed > progress.completed
            last = progress
            if is_another:
                while tasks:
                    bars.remove_task(tasks.pop())
                is_known = progress.stage in set(llvs.control.Stage)
                name = _STAGES.get(llvs.control.Stage(progress.stage), "working") if is_known else "working"
                tasks.append(bars.add_task(name, total=progress.total or None, rate=""))
            task = tasks[0]
            bars.update(task, completed=progress.completed)
            speed = bars.tasks[-1].speed
            bars.update(task, rate=f"{speed:,.0f}/s" if speed else "")

        yield hear
