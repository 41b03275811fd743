# For suites whose tests write exchange folders: the other implementation must be able to read all of them (Tests/Python/strict_reader.py).
#
#   watch_folders <name>                     before the tests; they then call strict_folder before they remove a folder
#   judge_folders [<test that damages a folder>]...   after them; sets strict_passed and strict_failed

watch_folders() {
    export LLVS_STRICT="$root/scripts/lib/strict_folder" LLVS_STRICT_LOG="$logs/$1.folders"
    rm -f "$LLVS_STRICT_LOG"
    touch "$LLVS_STRICT_LOG"
}

judge_folders() {
    local excepted
    excepted="$(printf '%s\n' "$@" '-')"
    # The first word of a line is the name of the test.
    awk 'NR == FNR { excepted[$1] = 1; next } !($1 in excepted)' <(echo "$excepted") "$LLVS_STRICT_LOG" >"$LLVS_STRICT_LOG.judged"
    strict_passed="$(grep -c ': [0-9]* versions *$' "$LLVS_STRICT_LOG.judged" || true)"
    strict_failed="$(grep -vc ': [0-9]* versions *$' "$LLVS_STRICT_LOG.judged" || true)"
    grep -v ': [0-9]* versions *$' "$LLVS_STRICT_LOG.judged" | sed 's/^/another implementation cannot read: /' || true
    if [ "$strict_passed" -eq 0 ]; then
        echo "no folder was looked at"
        strict_failed=$((strict_failed + 1))
    fi
}
