# Paths and messages of all scripts. Source it; it changes into the root of the tree.
set -euo pipefail

# With --help every script prints its first comment, and does nothing else. The simulator has a help of its own.
for word in "$@"; do
    if [[ "$word" = --help || "$word" = -h ]] && [ "$(basename "$0")" != simulate ]; then
        sed -n '2,${/^#/!q; s/^# \{0,1\}//p}' "$0"
        exit 0
    fi
done

# With this variable set, each process that imports the package or a test would compile it again.
unset PYTHONDONTWRITEBYTECODE

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
build="${LLVS_BUILD:-$root/build}"
logs="$build/logs"
library="$build/lib/libllvs.so"
venv="$build/venv"
python="$venv/bin/python"
cd "$root"
mkdir -p "$logs"

say() { printf '\n== %s\n' "$*"; }
die() { printf '%s\n' "$*" >&2; exit 1; }

jobs() { nproc 2>/dev/null || echo 2; }

# run_logged <name> <command>...: writes the output to a log, and to the terminal only if the command fails.
run_logged() {
    local log="$logs/$1.log"
    shift
    if ! "$@" >"$log" 2>&1; then
        tail -n 60 "$log" >&2
        die "Failed: $*  (whole output: $log)"
    fi
}

# engine_modules: prints the Swift modules that LLVS exports.
engine_modules() { sed -n 's/^@_exported import \(LLVS[A-Za-z]*\)$/\1/p' Sources/LLVS/LLVS.swift Sources/LLVS*/Imports.swift | sort -u; }
