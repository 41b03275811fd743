# run_damage [option...]: runs Tests/Damage with these options, and takes what it counted.
damage_passed=0 damage_failed=0
run_damage() {
    local output="$logs/test_damage.log" last
    "$build/damage/test_damage" "$@" 2>&1 | tee "$output" || true
    last="$(tail -n 1 "$output")"
    if [[ "$last" =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed$ ]]; then
        damage_passed="${BASH_REMATCH[1]}" damage_failed="${BASH_REMATCH[2]}"
    else
        damage_failed=1
    fi
}
