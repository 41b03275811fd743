# build_simulator: Tests/Simulator in release, at $simulator. Compiled with the flags of cmake/Library.cmake, so that
# what the library is made of is not compiled again.
simulator="$build/swift/release/simulate"
build_simulator() {
    run_logged simulator-build swift build --configuration release --product simulate --scratch-path "$build/swift" \
        -Xswiftc -static-stdlib -Xswiftc -gnone -Xswiftc -enforce-exclusivity=unchecked \
        -Xswiftc -Xfrontend -Xswiftc -disable-implicit-string-processing-module-import -Xswiftc -use-ld=lld
    # Real files where they cost nothing.
    if [ -z "${TMPDIR:-}" ] && [ -d /dev/shm ] && [ -w /dev/shm ]; then export TMPDIR=/dev/shm; fi
}
