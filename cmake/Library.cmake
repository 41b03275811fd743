# The shared library: compiled by SwiftPM, staged in build/lib under its versioned names.

find_program(SWIFT_EXECUTABLE swift REQUIRED
    DOC "The Swift compiler driver (https://www.swift.org/install/linux)")

# The number in the soname changes when programs built against an older library would break: while the major version is 0 with the minor
# one.
set(LLVS_SONAME "libllvs.so.${PROJECT_VERSION_MAJOR}")
if(PROJECT_VERSION_MAJOR EQUAL 0)
    string(APPEND LLVS_SONAME ".${PROJECT_VERSION_MINOR}")
endif()
set(LLVS_REAL_NAME "libllvs.so.${PROJECT_VERSION}")
set(LLVS_LIBRARY_DIR "${PROJECT_BINARY_DIR}/lib")
set(LLVS_SWIFT_SCRATCH "${PROJECT_BINARY_DIR}/swift" CACHE PATH "Where SwiftPM keeps its products")

# The linker's list of exports, made from include/llvs.symbols: those names with their symbol versions, and nothing of the
# Swift runtime or of the engine's own C. (A pattern `llvs_*` would let that through.) A listed name that
# nobody defines is an error of the linker. The digest in the file's name makes SwiftPM link again when
# the list changes.
file(STRINGS include/llvs.symbols llvs_symbols REGEX "^llvs_[a-z0-9_]+ LLVS_[A-Z0-9_.]+$")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS include/llvs.symbols)
set(llvs_symbol_versions "")
foreach(line IN LISTS llvs_symbols)
    string(REPLACE " " ";" pair "${line}")
    list(GET pair 0 name)
    list(GET pair 1 version)
    list(APPEND llvs_symbol_versions "${version}")
    string(APPEND "llvs_symbols_${version}" "${name};\n")
endforeach()
list(REMOVE_DUPLICATES llvs_symbol_versions)
set(llvs_exports "")
set(llvs_others "local: *;\n") # of the first: what is in none
foreach(version IN LISTS llvs_symbol_versions)
    string(APPEND llvs_exports "${version} {\nglobal:\n${llvs_symbols_${version}}${llvs_others}};\n")
    set(llvs_others "")
endforeach()
string(SHA256 llvs_exports_digest "${llvs_exports}")
string(SUBSTRING "${llvs_exports_digest}" 0 12 llvs_exports_digest)
set(LLVS_EXPORTS "${PROJECT_BINARY_DIR}/exports-${llvs_exports_digest}.map")
file(WRITE "${LLVS_EXPORTS}" "${llvs_exports}")

# These flags are here rather than in Package.swift because a package with unsafe flags cannot be
# depended upon, and because `swift test -c release` could not link with them. (SwiftPM's own
# --static-swift-stdlib is silently ignored for shared libraries.)
set(LLVS_SWIFT_FLAGS
    -Xswiftc -static-stdlib                       # the Swift runtime goes into the library
    -Xswiftc -cross-module-optimization           # inlines public functions of one module of the engine in the others
    -Xswiftc -gnone                               # it is stripped: debug information would only make the build longer
    -Xswiftc -enforce-exclusivity=unchecked       # the check would end the host; debug builds, which the tests use, keep it
    # Regular expressions, which nothing here uses, would be a megabyte.
    -Xswiftc -Xfrontend -Xswiftc -disable-implicit-string-processing-module-import
    -Xswiftc -use-ld=lld                          # gold leaves stray local entries in the symbol table
    -Xlinker -soname=${LLVS_SONAME}
    -Xlinker --version-script=${LLVS_EXPORTS}     # exports the C API alone, hiding the runtime
    -Xlinker -z -Xlinker now                      # names are bound when it is loaded, and their table is read-only from then on
    -Xlinker -z -Xlinker nodelete                 # the runtime cannot be unloaded
    -Xlinker -T -Xlinker ${PROJECT_SOURCE_DIR}/cmake/sections.ld # constants are read-only from then on, too; no tables for unwinding
    -Xlinker --no-eh-frame-hdr)
# Where the runtime would end the process for lack of memory, the reserve comes in: Sources/CLLVSShims/reserve.c.
foreach(name malloc calloc realloc aligned_alloc posix_memalign _Znwm)
    list(APPEND LLVS_SWIFT_FLAGS -Xlinker --wrap=${name})
endforeach()
# The names of Unicode's characters stay out: Sources/CLLVSShims/unicode_names.c.
list(APPEND LLVS_SWIFT_FLAGS -Xlinker --wrap=_swift_stdlib_getScalarName)

file(MAKE_DIRECTORY "${LLVS_LIBRARY_DIR}")
set(llvs_built "${LLVS_SWIFT_SCRATCH}/release/libllvs.so")

# Always run: only SwiftPM knows whether anything has to be compiled, and it finds out in a second.
add_custom_target(llvs_library ALL
    COMMAND "${CMAKE_COMMAND}" -E env LLVS_DISTRIBUTION=1
            "${SWIFT_EXECUTABLE}" build --configuration release --product llvs
            --package-path "${PROJECT_SOURCE_DIR}" --scratch-path "${LLVS_SWIFT_SCRATCH}" ${LLVS_SWIFT_FLAGS}
    COMMAND "${CMAKE_COMMAND}" "-DBUILT=${llvs_built}" "-DDESTINATION=${LLVS_LIBRARY_DIR}"
            "-DREAL_NAME=${LLVS_REAL_NAME}" "-DSONAME=${LLVS_SONAME}" "-DSTRIP=${CMAKE_STRIP}"
            "-DOBJCOPY=${CMAKE_OBJCOPY}"
            -P "${PROJECT_SOURCE_DIR}/cmake/StageLibrary.cmake"
    BYPRODUCTS "${LLVS_LIBRARY_DIR}/${LLVS_REAL_NAME}" "${LLVS_LIBRARY_DIR}/${LLVS_SONAME}" "${LLVS_LIBRARY_DIR}/libllvs.so"
    COMMENT "Building ${LLVS_REAL_NAME} with SwiftPM"
    USES_TERMINAL VERBATIM)

add_library(llvs SHARED IMPORTED GLOBAL)
add_library(llvs::llvs ALIAS llvs)
add_dependencies(llvs llvs_library)
set_target_properties(llvs PROPERTIES
    IMPORTED_LOCATION "${LLVS_LIBRARY_DIR}/${LLVS_REAL_NAME}"
    IMPORTED_SONAME "${LLVS_SONAME}"
    INTERFACE_INCLUDE_DIRECTORIES "${PROJECT_SOURCE_DIR}/include")
