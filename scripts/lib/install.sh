# Installs missing packages that the build and the tests need. docs/dependencies.md has the reason for each.

# A Debian package, and a command or a file by which it is recognised as installed.
debian_packages=(
    cmake make gcc g++ pkg-config libc6-dev
    libsqlite3-dev zlib1g-dev libssl-dev libcurl4-openssl-dev libexpat1-dev libcmocka-dev libdeflate0
    python3 python3-venv binutils age
)

has_package() { [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

# What a toolchain from swift.org needs from the system (https://www.swift.org/install/linux), by names that Debian and Ubuntu have had for
# years: packages with headers, which depend on the libraries.
swift_packages=(
    binutils gcc g++ git libc6-dev libcurl4-openssl-dev libedit-dev libncurses-dev libpython3-dev libsqlite3-dev libxml2-dev libz3-dev
    tzdata unzip zlib1g-dev
)

# Fails unless the Swift on PATH starts. A toolchain that was only unpacked may lack libraries of the system: they are installed if apt-get
# exists, and named otherwise.
require_swift() {
    command -v swift >/dev/null || die "A Swift toolchain (6.1 or later) is needed to build the library, and \`swift\` is not on PATH.
Install one from https://www.swift.org/install/linux and put its usr/bin on PATH. (Using the built library needs none.)"
    swift_starts && return
    if command -v apt-get >/dev/null && command -v dpkg-query >/dev/null; then install_packages "${swift_packages[@]}"; fi
    swift_starts || die "$(command -v swift) does not start: $(swift --version 2>&1 | tail -n 3)
$(missing_libraries)It needs the packages that https://www.swift.org/install/linux lists for this system (on Debian: ${swift_packages[*]})."
}
swift_starts() { swift --version >/dev/null 2>&1 && swift build --version >/dev/null 2>&1; }
missing_libraries() {
    local tools; tools="$(dirname "$(readlink -f "$(command -v swift)")")"
    ldd "$tools"/swift-{driver,frontend,build} 2>/dev/null | awk '/not found/ { print "Missing: " $1 }' | sort -u
}

install_missing() {
    require_swift
    if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
        # On systems other than Debian nothing is installed, only checked.
        local missing=()
        for tool in cmake make cc c++ pkg-config python3 strip nm age; do
            command -v "$tool" >/dev/null || missing+=("$tool")
        done
        for header in sqlite3.h zlib.h openssl/sha.h curl/curl.h expat.h cmocka.h; do
            echo "#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <$header>" | cc -E - >/dev/null 2>&1 || missing+=("the C header <$header>")
        done
        python3 -c 'import venv, ensurepip' 2>/dev/null || missing+=("Python's venv module")
        [ ${#missing[@]} -eq 0 ] && return
        printf 'Missing: %s\n' "${missing[@]}" >&2
        die "This machine has no apt-get. Please install what is missing with its own package manager: cmake, make, a C and a
C++ compiler, pkg-config, SQLite 3, libcurl, libexpat, zlib and OpenSSL with headers, cmocka, age, and Python 3.10
or later with venv.
(Debian's names: ${debian_packages[*]})"
    fi
    local packages=()
    for package in "${debian_packages[@]}"; do
        has_package "$package" || packages+=("$package")
    done
    [ ${#packages[@]} -eq 0 ] && return
    install_packages "${packages[@]}"
}

# install_packages <Debian package>...
install_packages() {
    local as_root=()
    command -v apt-get >/dev/null || die "This machine has no apt-get to install $* with."
    say "Installing $*"
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null || die "Please run as root: apt-get install $*"
        as_root=(sudo)
    fi
    # Suites that run at the same time install one after another.
    local log="$logs/apt.log"
    (
        flock 9
        { "${as_root[@]}" apt-get update &&
          "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@"; } >"$log" 2>&1 ||
            { tail -n 20 "$log" >&2; die "apt-get could not install $* (whole output: $log)"; }
    ) 9>"$logs/apt.lock"
}

# A virtual environment with the tools of the Python tests, rebuilt when their list changes.
make_venv() {
    local wanted="$root/scripts/requirements.txt"
    if ! cmp -s "$wanted" "$venv/requirements.txt"; then
        say "Setting up Python tools in $venv"
        rm -rf "$venv"
        run_logged venv python3 -m venv "$venv"
        run_logged pip "$python" -m pip install --disable-pip-version-check -r "$wanted"
        cp "$wanted" "$venv/requirements.txt"
    fi
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' ||
        die "Python 3.10 or later is needed; python3 is $("$python" --version)"
}
