# For test programs that count themselves and end with "<number> passed, <number> failed" (Tests/Faults, Tests/Damage, Tests/Concurrency).
# `scripts/test` runs a sample of their random cases, and all of them with LLVS_DEEP.
programs_passed=0 programs_failed=0

# run_program <program> [option...]: runs it, and adds its counts. The log of a run with --planted has a name of its own, and so has
# that of a deep run.
run_program() {
    local program="$1" name output last; shift
    name="$(basename "$program")"
    if [[ " $* " == *" --planted "* ]]; then name="$name.planted"; elif [ -n "${LLVS_DEEP:-}" ]; then name="$name.deep"; fi
    output="$logs/$name.log"
    echo "-- $(basename "$program") $*"
    "$program" "$@" 2>&1 | tee "$output" || true
    last="$(tail -n 1 "$output")"
    if [[ "$last" =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed$ ]]; then
        programs_passed=$((programs_passed + BASH_REMATCH[1]))
        programs_failed=$((programs_failed + BASH_REMATCH[2]))
    else
        echo "FAILED  $(basename "$program") $* ended without a count"
        programs_failed=$((programs_failed + 1))
    fi
}

# run_programs <folder of the build> [option...]: runs each test_* there with these options.
run_programs() {
    local folder="$1" program; shift
    for program in "$build/$folder"/test_*; do run_program "$program" "$@"; done
}

# soak_programs <folder of the build>: the same for LLVS_SOAK_MINUTES in all, from LLVS_SOAK_SEED on; then reports.
soak_programs() {
    local programs=("$build/$1"/test_*)
    run_programs "$1" --minutes "$(awk -v m="$LLVS_SOAK_MINUTES" -v n="${#programs[@]}" 'BEGIN { print m / n }')" --seed "$LLVS_SOAK_SEED"
    report "$programs_passed" "$programs_failed"
}

# temporary_files_in_memory: puts temporary files in memory, unless TMPDIR is set or there is no room.
temporary_files_in_memory() {
    if [ -z "${TMPDIR:-}" ] && [ -d /dev/shm ] && [ -w /dev/shm ] &&
        [ "$(df --output=avail -k /dev/shm | tail -n 1)" -gt $((2 << 20)) ]; then
        export TMPDIR=/dev/shm
    fi
}
