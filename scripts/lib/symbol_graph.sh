# module_maps <folder of the build>: sets `maps` to the options with which the compiler can read modules of that build.
module_maps() {
    local map
    maps=()
    for map in "$1"/*.build/module.modulemap; do
        case "$map" in *-tool.build/*) ;; *) maps+=(-Xcc "-fmodule-map-file=$map") ;; esac
    done
}

# symbol_graph <folder of the build> <module> <folder> [access]: writes the public declarations and extensions of a Swift module, with their
# comments; those of another access level if one is given.
symbol_graph() {
    local maps
    module_maps "$1"
    swift-symbolgraph-extract -module-name "$2" -I "$1/Modules" -target "$(uname -m)-unknown-linux-gnu" \
        -output-dir "$3" -minimum-access-level "${4:-public}" "${maps[@]}"
}

# engine_graph <folder of the build> <folder>: writes the public declarations of all modules that LLVS exports, as those of LLVS, which is
# what users import.
engine_graph() {
    local module file number=0
    for module in LLVS $(engine_modules); do
        mkdir -p "$2/$module" && symbol_graph "$1" "$module" "$2/$module" || return
        for file in "$2/$module"/*.symbols.json; do
            number=$((number + 1))
            sed 's/"module":{"name":"LLVS[A-Za-z]*"/"module":{"name":"LLVS"/' "$file" >"$2/LLVS-$number.symbols.json" || return
        done
        rm -r "${2:?}/$module"
    done
}

# whole_graph <folder of the build> <folder>: writes all declarations of the modules that LLVS exports.
whole_graph() {
    local module
    mkdir -p "$2"
    for module in LLVS $(engine_modules); do symbol_graph "$1" "$module" "$2" private || return; done
}
