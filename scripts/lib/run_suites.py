"""Runs suites at the same time on the cores of this machine, and reports what failed. scripts/test calls it, and explains its options.

The first comment lines of a suite (scripts/suites) declare what it needs and how many cores it uses:

    # needs: debug        nothing (the default), release, debug, both, or all: every other suite has ended
    # busy: 2             cores that it uses: 1 is the default, 0 is for suites that mostly wait, and for those that need no build
    # order: 10           suites with a smaller number begin first; the default is 50

The two builds are tasks like suites. A task begins as soon as its needs are fulfilled and a core is free for it. One task more than there
are cores may run, since each also waits, for disks and for other processes. Builds use one core for a long time, so suites that need none
begin beside them. A long suite of one process begins before those that distribute their tests over all cores, and short ones come last, so
that all cores are used until the end.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("LLVS_BUILD", ROOT / "build"))
LOGS = BUILD / "logs"
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 2
BUILDS = {"release": "build-release", "debug": "build-debug"}
#: How logs report a failed test: Swift Testing, cmocka, pytest, `check`, scripts/lib/strict.sh, ctest.
FAILURES = re.compile(
    r"^(?:✘ Test (?!run)(?P<swift>.+?) (?:failed after|recorded an issue(?: at (?P<place>.*))?)"
    r"|\[  FAILED  \] (?P<cmocka>\w+)$"
    r"|(?:FAILED|ERROR) (?P<pytest>Tests/\S+)"
    r"|FAILED  (?P<check>.+)"
    r"|(?P<folder>another implementation cannot read: .+)"
    r"|(?P<ctest>\s*\d+ - \w+ \((?:Failed|Timeout|SEGFAULT|.*Exception).*))", re.M)
SEEDS = re.compile(r"^(?!◇).*(?:\bseed\b|reproduce_failure|Falsifying example).*$", re.M | re.I)
#: Signals that end a process that crashes; SIGTERM and the like come from outside.
CRASHES = {signal.SIGILL, signal.SIGTRAP, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGSEGV}


@dataclass
class Task:
    name: str
    command: list[str]
    needs: set[str] = field(default_factory=set)
    busy: int = 1
    order: int = 50
    run: int = 0

    @property
    def is_build(self) -> bool:
        return self.name in BUILDS.values()


@dataclass
class Outcome:
    """The result of a task: tests counted, seconds by the clock and of the processors, and its log."""

    task: Task
    passed: int
    failed: int
    seconds: float
    cpu: float
    log: Path
    crash: str = ""


def settings(path: Path) -> dict[str, str]:
    """Returns the `# name: value` lines in the comment with which a suite begins."""
    found = {}
    for line in path.read_text().splitlines()[1:]:
        if not line.startswith("#"):
            break
        if match := re.match(r"# (needs|busy|order): (\w+)", line):
            found[match[1]] = match[2]
    return found


def suite_task(name: str) -> Task:
    path = ROOT / "scripts/suites" / name
    said = settings(path)
    needs = {"both": {"release", "debug"}, "nothing": set()}.get(said.get("needs", "nothing"), {said.get("needs", "nothing")})
    unknown = needs - {"release", "debug", "all"}
    if unknown:
        raise SystemExit(f"{path}: unknown need {', '.join(unknown)}")
    return Task(name, [str(path)], needs, min(int(said.get("busy", 1)), CORES), int(said.get("order", 50)))


def crash_of(status: int, log: str) -> str:
    """Describes the signal that ended a suite; "" if none did."""
    number = -status if status < 0 else 0
    if match := re.search(r"(?:Exited with unexpected signal code|unexpected signal code) (\d+)", log):
        number = int(match[1])
    if not number:
        return ""
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = f"signal {number}"
    text = f"ended by {name}"
    if number in {int(each) for each in CRASHES} and "swift" in log[:20_000].lower():
        text += (". If a struct changed since the last build, its users may not have been compiled again: "
                 "remove the debug build (.build) and run it once more before looking further")
    return text


def run(task: Task, extra: dict[str, str]) -> Outcome:
    """Runs a task to its end. Its log goes to a file of its own; a suite also writes its counts to a file."""
    suffix = ".fast" if os.environ.get("LLVS_FAST") else ""
    result = LOGS / f"{task.name}{suffix}.result"
    log = LOGS / (f"{task.name}.{task.run}.log" if task.run else f"{task.name}.log")
    result.unlink(missing_ok=True)
    begun = time.monotonic()
    with log.open("wb") as output:
        process = subprocess.Popen(
            task.command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
            env=os.environ | extra | {"LLVS_RESULT": str(result)})
        _, raw, usage = os.wait4(process.pid, 0)
        status = process.returncode = os.waitstatus_to_exitcode(raw)
    seconds = time.monotonic() - begun
    text = log.read_text(errors="replace")
    passed = failed = 0
    if result.exists():
        passed, failed = map(int, result.read_text().split())
    crash = crash_of(status, text)
    if task.is_build:
        failed = int(status != 0)
    elif (status != 0 or crash) and failed == 0:
        failed = 1
    elif passed == 0 and failed == 0:
        failed, crash = 1, "ran no tests"
    return Outcome(task, passed, failed, seconds, usage.ru_utime + usage.ru_stime, log, crash)


def failures(outcome: Outcome) -> Iterator[str]:
    """Yields the failed tests of an outcome, each with the command that runs it alone."""
    text = outcome.log.read_text(errors="replace")
    seen = set()
    for match in FAILURES.finditer(text):
        kind, name = next((kind, name) for kind, name in match.groupdict().items() if name)
        name = name.strip()
        if name == "«unknown»":
            # The failure was on a thread that the test started. Swift Testing cannot assign it to a test.
            kind, name = "thread", f"on a thread of a test, {match['place']}"
        if kind == "swift":
            name = re.sub(r"\(.*", "", name.strip('"'))
        if name in seen:
            continue
        seen.add(name)
        alone = f"scripts/test --one {name.split(' ')[0]}" if kind in ("swift", "pytest") else f"scripts/test {outcome.task.name}"
        yield f"{outcome.task.name}: {name[:200]}    (alone: {alone})"
    if not seen:
        yield f"{outcome.task.name}: {outcome.crash or 'ended with an error'}    (alone: scripts/test {outcome.task.name})"
    elif outcome.crash:
        yield f"{outcome.task.name}: {outcome.crash}"
    for line in list(dict.fromkeys(SEEDS.findall(text)))[:6]:
        yield f"    {line.strip()[:200]}"


class Runner:
    """Starts tasks in the order of their numbers as cores become free. One thread uses it; each task runs in a thread of its own."""

    def __init__(self, tasks: list[Task], extra: dict[str, str] | None = None) -> None:
        self.waiting = sorted(tasks, key=lambda task: (task.order, task.name))
        self.extra = extra or {}
        self.running: dict[str, Task] = {}
        self.outcomes: list[Outcome] = []
        self.changed = threading.Condition()
        self.built = {need for need, name in BUILDS.items() if name not in {task.name for task in tasks}}
        self.broken: set[str] = set()

    def may_begin(self, task: Task) -> bool:
        if "all" in task.needs:
            return not self.running and all("all" in other.needs for other in self.waiting)
        if not task.needs <= self.built:
            return False
        taken = sum(each.busy for each in self.running.values())
        # A suite that waits uses no core, but only a few run at once: their servers need memory.
        if task.busy == 0:
            return sum(each.busy == 0 for each in self.running.values()) < 3
        return taken == 0 or taken + task.busy <= CORES + 1

    def perform(self, task: Task) -> None:
        try:
            outcome = run(task, self.extra)
        except Exception as error:  # A task that cannot even start is a failure of that task.
            log = LOGS / f"{task.name}.log"
            log.write_text(f"{task.name} could not be run: {error}\n")
            outcome = Outcome(task, 0, 1, 0, 0, log, str(error))
        with self.changed:
            del self.running[task.name]
            self.outcomes.append(outcome)
            for need, name in BUILDS.items():
                if name == task.name:
                    (self.built if outcome.failed == 0 else self.broken).add(need)
            self.changed.notify()

    def all(self, report: Callable[[Outcome], None]) -> list[Outcome]:
        reported = 0
        with self.changed:
            while self.waiting or self.running or reported < len(self.outcomes):
                for outcome in self.outcomes[reported:]:
                    report(outcome)
                    reported += 1
                for task in [each for each in self.waiting if each.needs & self.broken]:
                    self.waiting.remove(task)
                    log = LOGS / f"{task.name}.log"
                    log.write_text("not run: a build that it needs failed\n")
                    self.outcomes.append(Outcome(task, 0, 1, 0, 0, log, "not run: a build that it needs failed"))
                begun = is_full = False
                for task in list(self.waiting):
                    if is_full and task.busy:
                        continue
                    if self.may_begin(task):
                        self.waiting.remove(task)
                        self.running[task.name] = task
                        threading.Thread(target=self.perform, args=(task,), daemon=True).start()
                        begun = True
                    elif task.busy and task.needs <= self.built:
                        # Do not begin smaller suites after it: they would use its cores again and again.
                        is_full = True
                if not begun and self.running and reported == len(self.outcomes):
                    self.changed.wait()
        return self.outcomes


def report(outcome: Outcome) -> None:
    """Prints the result of one task at once; of a failed one also the end of its log."""
    print(f"\n== {outcome.task.name}" + (f", run {outcome.task.run}" if outcome.task.run else ""))
    if outcome.failed:
        print("\n".join(outcome.log.read_text(errors="replace").splitlines()[-80:]))
        if outcome.crash:
            print(outcome.crash)
    print(f"{outcome.passed} passed, {outcome.failed} failed, {outcome.seconds:.0f} s", flush=True)


def summary(outcomes: list[Outcome], begun: float) -> int:
    print(f"\n== Summary (logs: {LOGS})")
    print(f"{'':<28} {'passed':>7} {'failed':>7} {'seconds':>8} {'of CPU':>7}")
    for each in sorted(outcomes, key=lambda outcome: (not outcome.task.is_build, outcome.task.name, outcome.task.run)):
        print(f"{each.task.name:<28} {each.passed:>7} {each.failed:>7} {each.seconds:>8.0f} {each.cpu:>7.0f}")
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"{'in all':<28} {'':>7} {'':>7} {time.monotonic() - begun:>8.0f} {used.ru_utime + used.ru_stime:>7.0f}")
    failed = [each for each in outcomes if each.failed]
    if failed:
        print("\n== Failed")
        for each in failed:
            print("\n".join(failures(each)))
    passed_count, failed_count = sum(each.passed for each in outcomes), sum(each.failed for each in outcomes)
    print(f"\n{passed_count} passed, {failed_count} failed", flush=True)
    return int(failed_count > 0 or passed_count == 0)


def build_tasks(suites: list[Task]) -> list[Task]:
    """Returns the builds that these suites need. Most suites wait for the release build, so the debug build has a lower priority."""
    needed = set().union(*(suite.needs for suite in suites)) if suites else set()
    if "all" in needed:
        needed |= {"release"}
    return [Task(BUILDS[need], ["nice", "-n", priority, str(ROOT / "scripts/lib" / f"{BUILDS[need]}.sh")], set(), 1, order)
            for need, priority, order in (("release", "0", 2), ("debug", "10", 3)) if need in needed]


def busy_processes(count: int) -> list[subprocess.Popen[bytes]]:
    return [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]


def repeat(suites: list[Task], times: int, load: int, begun: float) -> int:
    """Runs each suite `times` times, the second half of its runs beside busy processes. One run at a time, so that all are alike."""
    outcomes = Runner(build_tasks(suites)).all(report)
    if any(each.failed for each in outcomes):
        return summary(outcomes, begun)
    for suite in suites:
        for index in range(1, times + 1):
            loaded = load > 0 and index > times - times // 2
            others = busy_processes(load if loaded else 0)
            try:
                runner = Runner([Task(suite.name, suite.command, set(), suite.busy, suite.order, index)])
                outcomes += runner.all(report)
            finally:
                for each in others:
                    each.kill()
                    each.wait()
    return summary(outcomes, begun)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeat", type=int, default=0)
    parser.add_argument("--load", type=int, default=0)
    parser.add_argument("suites", nargs="+")
    arguments = parser.parse_args()
    begun = time.monotonic()
    LOGS.mkdir(parents=True, exist_ok=True)
    suites = [suite_task(name) for name in arguments.suites]
    if arguments.repeat:
        return repeat(suites, arguments.repeat, arguments.load, begun)
    return summary(Runner(build_tasks(suites) + suites).all(report), begun)


if __name__ == "__main__":
    sys.exit(main())
