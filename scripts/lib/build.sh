# Builds the library and all C programs in release. If nothing changed, it takes a second.
build_release() {
    say "Building (release) into $build"
    run_logged cmake-configure cmake -S "$root" -B "$build" -DCMAKE_BUILD_TYPE=Release
    run_logged cmake-build cmake --build "$build" --parallel "$(jobs)"
    [ -e "$library" ] || die "The build did not make $library"
}

# whole_tree <command>...: runs a command of SwiftPM that includes fuzz targets and models (Package.swift).
whole_tree() { LLVS_WHOLE_TREE=1 "$@"; }

# Builds everything that the debug suites run, in .build: tests of the engine and of models, fuzz targets, examples.
build_debug() {
    say "Building (debug) into .build"
    run_logged swift-build whole_tree swift build --build-tests
}
debug_folder() { (cd -P .build/debug && pwd); }

# no_warnings <log>: fails if that build warned about a file of this tree. The compiler does not repeat warnings of files it did not
# compile.
no_warnings() { ! grep -E "^$root/.*: warning: " "$logs/$1.log"; }
