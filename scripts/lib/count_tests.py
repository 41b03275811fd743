"""Counts tests in JUnit result files: prints "<passed> <failed>".

With --cmocka, each test case is a program that prints in cmocka's lines how many tests it ran. A program without such lines counts as one
test, and one that failed without naming a test counts as one failure.
"""

from __future__ import annotations

import re
import sys
import xml.etree.ElementTree as ElementTree


def count_program(output: str, failed: bool) -> tuple[int, int]:
    passed_tests = sum(int(n) for n in re.findall(r"\[  PASSED  \] (\d+) test", output))
    failed_tests = sum(int(n) for n in re.findall(r"\[  FAILED  \] (?:tests: )?(\d+) test", output))
    if failed:
        return passed_tests, max(failed_tests, 1)
    return max(passed_tests, 1), failed_tests


def main(arguments: list[str]) -> None:
    cmocka = "--cmocka" in arguments
    passed = failed = 0
    for path in (a for a in arguments if a != "--cmocka"):
        for case in ElementTree.parse(path).iter("testcase"):
            broken = case.find("failure") is not None or case.find("error") is not None
            if case.find("skipped") is not None:
                print(f"skipped: {case.get('classname')} {case.get('name')}", file=sys.stderr)
            elif cmocka:
                p, f = count_program("".join(case.findtext("system-out") or ""), broken or case.get("status") == "fail")
                passed, failed = passed + p, failed + f
            else:
                passed, failed = passed + (not broken), failed + broken
    print(passed, failed)


main(sys.argv[1:])
