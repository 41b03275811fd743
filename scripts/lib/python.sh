# The Python package in the tree, for suites that use it without installing it.
package_parent=bindings/python/src

# with_package <command>...: runs a command with the package of the tree and the library of the build.
with_package() { PYTHONPATH="$root/$package_parent" LLVS_LIBRARY="$library" "$@"; }

# PATH without the folders that hold a Swift toolchain.
path_without_swift() {
    local folder result=
    local IFS=:
    for folder in $PATH; do
        [ -x "$folder/swift" ] || [ -x "$folder/swiftc" ] || result="$result${result:+:}$folder"
    done
    printf '%s' "$result"
}
