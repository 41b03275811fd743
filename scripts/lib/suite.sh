# For suites: checks that count themselves, and the report to scripts/test.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

checks_passed=0 checks_failed=0

# report <passed> <failed>: reports the counts. Call it once, at the end.
report() {
    echo "$1 $2" >"${LLVS_RESULT:-/dev/stdout}"
    [ "$2" -eq 0 ] && [ "$1" -gt 0 ]
}
report_checks() { report "$checks_passed" "$checks_failed"; }

# check <name> <command>...: runs a command, and counts it as one test.
check() {
    local what="$1"; shift
    if "$@"; then
        echo "ok      $what"
        checks_passed=$((checks_passed + 1))
    else
        echo "FAILED  $what: $*"
        checks_failed=$((checks_failed + 1))
    fi
}

# left_out <suite>: prints the tests that the fast lane leaves out, a line each; none if everything runs.
left_out() { [ -z "${LLVS_FAST:-}" ] || slow_tests "$1"; }

# slow_tests <suite>: prints the tests that take long, a line each.
slow_tests() { sed -n "s/^$1 //p" scripts/lib/slow_tests.txt; }

# report_junit <file>...: reports the counts of JUnit result files; add `--cmocka` for ctest's, whose programs count their own tests.
report_junit() {
    local counts
    counts="$(python3 scripts/lib/count_tests.py "$@")"
    # shellcheck disable=SC2086
    report $counts
}
