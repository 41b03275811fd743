# run_faults [option...]: runs each program of Tests/Faults with these options, and adds up what it counted.
faults_passed=0 faults_failed=0
run_faults() {
    local program output last
    for program in "$build"/faults/test_*; do
        output="$logs/$(basename "$program").log"
        echo "-- $(basename "$program") $*"
        "$program" "$@" 2>&1 | tee "$output" || true
        last="$(tail -n 1 "$output")"
        if [[ "$last" =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed$ ]]; then
            faults_passed=$((faults_passed + BASH_REMATCH[1]))
            faults_failed=$((faults_failed + BASH_REMATCH[2]))
        else
            faults_failed=$((faults_failed + 1))
        fi
    done
}
