# For suites of Swift tests, which use the debug build (scripts/lib/build-debug.sh).
source scripts/lib/build.sh

swift_passed=0 swift_failed=0
# swift_tests <suite> [option of `swift test`...]: runs the tests that the options select; sets swift_passed and swift_failed.
swift_tests() {
    local suite="$1" status=0 results=() file; shift
    rm -f "$logs/$suite"*.xml
    # Nothing is built here, so suites do not wait for each other: SwiftPM's lock is for builds.
    whole_tree swift test --skip-build --ignore-lock "$@" --xunit-output "$logs/$suite.xml" || status=$?
    # Swift Testing and XCTest each write a file; XCTest writes none if it ran nothing.
    for file in "$logs/$suite"*.xml; do [ -s "$file" ] && results+=("$file"); done
    [ ${#results[@]} -gt 0 ] || die "swift test left no results (status $status)"
    read -r swift_passed swift_failed < <(python3 scripts/lib/count_tests.py "${results[@]}")
    if [ "$status" -ne 0 ] && [ "$swift_failed" -eq 0 ]; then swift_failed=1; fi
}
