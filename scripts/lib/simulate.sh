# build_simulator: builds Tests/Simulator in release, at $simulator. It has the flags of cmake/Library.cmake, so that the library's modules
# are not compiled again.
simulator="$build/swift/release/simulate"
build_simulator() {
    LLVS_DISTRIBUTION=1 run_logged simulator-build swift build --configuration release --product simulate --scratch-path "$build/swift" \
        -Xswiftc -static-stdlib -Xswiftc -cross-module-optimization -Xswiftc -gnone -Xswiftc -enforce-exclusivity=unchecked \
        -Xswiftc -Xfrontend -Xswiftc -disable-implicit-string-processing-module-import -Xswiftc -use-ld=lld \
        -Xswiftc -ld-path="$build/runtime/ld.lld"
    # Use real files if that is fast.
    if [ -z "${TMPDIR:-}" ] && [ -d /dev/shm ] && [ -w /dev/shm ]; then export TMPDIR=/dev/shm; fi
}
