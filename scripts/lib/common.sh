# For all scripts: where things are, and how they speak. Source it; it changes into the root of the tree.
set -euo pipefail

# Each process that imports the package or a test would compile it again.
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

# run_logged <name> <command>...: the output goes to a log, and to the terminal only when the command fails.
run_logged() {
    local log="$logs/$1.log"
    shift
    if ! "$@" >"$log" 2>&1; then
        tail -n 60 "$log" >&2
        die "Failed: $*  (whole output: $log)"
    fi
}
