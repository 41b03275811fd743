#!/usr/bin/env bash
# Runs single tests against existing builds, for `scripts/test --one`: a path in Tests/ (pytest), a program of Tests/C (ctest), or a
# function of the Swift tests.
source "$(dirname "$0")/common.sh"
source scripts/lib/build.sh
source scripts/lib/python.sh
for name in "$@"; do
    case "$name" in
        Tests/Wheel/*) env -i HOME="$HOME" PATH="$build/run/wheel/venv/bin:$PATH" pytest "$name" ;;
        Tests/*) with_package "$python" -m pytest "$name" ;;
        test_*_c|test_*_c_*|test_*_cpp|example_*) ctest --test-dir "$build" --tests-regex "^$name\$" --output-on-failure --no-tests=error ;;
        *) whole_tree swift test --filter "$name" ;;
    esac
done
