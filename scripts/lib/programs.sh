# For test programs that count themselves and end with "<number> passed, <number> failed" (Tests/Faults, Tests/Concurrency).
programs_passed=0 programs_failed=0

# run_programs <folder of the build> [option...]: runs each test_* there with these options, and adds up what it counted.
run_programs() {
    local folder="$1" program output last; shift
    for program in "$build/$folder"/test_*; do
        output="$logs/$(basename "$program").log"
        echo "-- $(basename "$program") $*"
        "$program" "$@" 2>&1 | tee "$output" || true
        last="$(tail -n 1 "$output")"
        if [[ "$last" =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed$ ]]; then
            programs_passed=$((programs_passed + BASH_REMATCH[1]))
            programs_failed=$((programs_failed + BASH_REMATCH[2]))
        else
            programs_failed=$((programs_failed + 1))
        fi
    done
}

# soak_programs <folder of the build>: the same for LLVS_SOAK_MINUTES in all, from LLVS_SOAK_SEED on; then the report.
soak_programs() {
    local programs=("$build/$1"/test_*)
    run_programs "$1" --minutes "$(awk -v m="$LLVS_SOAK_MINUTES" -v n="${#programs[@]}" 'BEGIN { print m / n }')" --seed "$LLVS_SOAK_SEED"
    report "$programs_passed" "$programs_failed"
}
