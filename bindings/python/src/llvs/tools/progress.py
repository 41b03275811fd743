"""Bars of progress on standard error, where that is a terminal: what is done, how fast, and how long it still takes."""

from __future__ import annotations

import contextlib
import sys
from typing import Iterator, Optional

import llvs

_STAGES = {
    llvs.Stage.LISTING: "listing",
    llvs.Stage.RECEIVING: "receiving",
    llvs.Stage.ADDING: "adding",
    llvs.Stage.SENDING: "sending",
    llvs.Stage.READING: "reading",
    llvs.Stage.WRITING: "writing",
    llvs.Stage.VERIFYING: "verifying",
}


@contextlib.contextmanager
def shown() -> Iterator[Optional[llvs.ProgressCallback]]:
    """What to give a call as its `progress`; None where nobody would see it. The bar goes when the block ends."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

    rate = TextColumn("{task.fields[rate]}")
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), rate, TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        tasks: list[TaskID] = []
        last: Optional[llvs.Progress] = None

        def hear(progress: llvs.Progress) -> None:
            nonlocal last
            if not progress.completed and not progress.total:
                return  # nothing is to be counted yet
            # One stage may count one thing after another (bytes, then versions): each is a bar, or the rate would be of neither.
            is_another = last is None or (last.stage, last.total) != (progress.stage, progress.total) or last.completed > progress.completed
            last = progress
            if is_another:
                while tasks:
                    bars.remove_task(tasks.pop())
                name = _STAGES.get(llvs.Stage(progress.stage), "working") if progress.stage in set(llvs.Stage) else "working"
                tasks.append(bars.add_task(name, total=progress.total or None, rate=""))
            task = tasks[0]
            bars.update(task, completed=progress.completed)
            speed = bars.tasks[-1].speed
            bars.update(task, rate=f"{speed:,.0f}/s" if speed else "")

        yield hear
