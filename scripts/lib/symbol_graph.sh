# module_maps <folder of the build>: sets `maps` to the options with which the compiler can read modules of that build.
module_maps() {
    local map
    maps=()
    for map in "$1"/*.build/module.modulemap; do
        case "$map" in *-tool.build/*) ;; *) maps+=(-Xcc "-fmodule-map-file=$map") ;; esac
    done
}

# symbol_graph <folder of the build> <module> <folder>: writes the public declarations and extensions of a Swift module, with their
# comments.
symbol_graph() {
    local maps
    module_maps "$1"
    swift-symbolgraph-extract -module-name "$2" -I "$1/Modules" -target "$(uname -m)-unknown-linux-gnu" \
        -output-dir "$3" -minimum-access-level public "${maps[@]}"
}
