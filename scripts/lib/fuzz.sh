# For scripts/fuzz and the suite that runs its inputs: paths of the builds, and the limits that apply to every input.
source scripts/lib/build.sh
fuzz_build="$build/fuzz"
# The targets in a usual build, from the debug build of scripts/test: they run files, and make the seeds.
fuzz_files="$root/.build/debug/fuzz-files"

# An input has at most 64 KiB. The memory that it can make the library use is bounded by its size, by the memory budget that the targets
# give a store (1 MiB), and by deflate, which expands data at most a thousandfold.
fuzz_limits=(-max_len=65536 -timeout=20 -rss_limit_mb=1024 -malloc_limit_mb=256)
# scripts/sanitize checks for leaks: here the Swift runtime keeps some objects until the end.
fuzz_asan="detect_leaks=0:allocator_may_return_null=1:handle_abort=1:quarantine_size_mb=16"

build_fuzz_files() {
    run_logged fuzz-files-build whole_tree swift build --product fuzz-files
}

# make_seeds <folder>: the seeds of every target, one folder each.
make_seeds() {
    rm -rf "$1"
    mkdir -p "$1"
    "$fuzz_files" seeds "$1"
}
