# Builds the library and all C programs in release. Asking again costs a second when nothing changed.
build_release() {
    say "Building (release) into $build"
    run_logged cmake-configure cmake -S "$root" -B "$build" -DCMAKE_BUILD_TYPE=Release
    run_logged cmake-build cmake --build "$build" --parallel "$(jobs)"
    [ -e "$library" ] || die "The build did not make $library"
}
