# symbol_graph <folder of the build> <module> <folder>: what is public in a Swift module, with its words, and in which it extends others.
symbol_graph() {
    local maps=() map
    for map in "$1"/*.build/module.modulemap; do
        case "$map" in *-tool.build/*) ;; *) maps+=(-Xcc "-fmodule-map-file=$map") ;; esac
    done
    swift-symbolgraph-extract -module-name "$2" -I "$1/Modules" -target "$(uname -m)-unknown-linux-gnu" \
        -output-dir "$3" -minimum-access-level public "${maps[@]}"
}
