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
option(LLVS_NETWORK "Servers, cloud drives and direct connections. OFF: a smaller library, in which these are UNSUPPORTED" ON)
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

# Swift's runtime marks its functions so that linkers keep all of them, 0.9 MB that nothing here uses. The library is linked with a copy
# without the marks: collectable.c. Swift's compiler puts the folder of the original first, so a script in the place of the linker puts
# that of the copy before it.
execute_process(COMMAND "${SWIFT_EXECUTABLE}" -print-target-info OUTPUT_VARIABLE llvs_swift_target COMMAND_ERROR_IS_FATAL ANY)
string(JSON llvs_swift_resources GET "${llvs_swift_target}" paths runtimeResourcePath)
set(llvs_runtime_name "${CMAKE_STATIC_LIBRARY_PREFIX}swiftCore${CMAKE_STATIC_LIBRARY_SUFFIX}")
set(llvs_runtime "${llvs_swift_resources}_static/linux/${llvs_runtime_name}")
cmake_path(GET llvs_swift_resources PARENT_PATH llvs_swift_root)
find_program(LLVS_LLD ld.lld REQUIRED HINTS "${llvs_swift_root}/../bin" DOC "The linker of the Swift toolchain")
set(LLVS_RUNTIME_DIR "${PROJECT_BINARY_DIR}/runtime")
file(CONFIGURE OUTPUT "${LLVS_RUNTIME_DIR}/ld.lld" CONTENT "#!/bin/sh\nexec '@LLVS_LLD@' '-L@LLVS_RUNTIME_DIR@' \"$@\"\n" @ONLY)
file(CHMOD "${LLVS_RUNTIME_DIR}/ld.lld" PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
list(APPEND LLVS_SWIFT_FLAGS -Xswiftc -ld-path=${LLVS_RUNTIME_DIR}/ld.lld)
add_executable(llvs_collectable EXCLUDE_FROM_ALL cmake/collectable.c)
target_compile_options(llvs_collectable PRIVATE -std=c99 -Wall -Wextra -Werror)
set_target_properties(llvs_collectable PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${LLVS_RUNTIME_DIR}")
add_custom_command(OUTPUT "${LLVS_RUNTIME_DIR}/${llvs_runtime_name}"
    COMMAND llvs_collectable "${llvs_runtime}" "${LLVS_RUNTIME_DIR}/${llvs_runtime_name}"
    DEPENDS llvs_collectable "${llvs_runtime}" VERBATIM)
add_custom_target(llvs_runtime DEPENDS "${LLVS_RUNTIME_DIR}/${llvs_runtime_name}")

# llvs_swift_library(<target> <product> <folder> <distribution> [ALL]): builds a product of Package.swift, and puts it stripped into the
# folder. It always runs: only SwiftPM knows whether anything has to be compiled, and it finds out in a second.
function(llvs_swift_library target product folder distribution)
    file(MAKE_DIRECTORY "${folder}")
    add_custom_target(${target} ${ARGN}
        COMMAND "${CMAKE_COMMAND}" -E env LLVS_DISTRIBUTION=${distribution}
                "${SWIFT_EXECUTABLE}" build --configuration release --product ${product}
                --package-path "${PROJECT_SOURCE_DIR}" --scratch-path "${LLVS_SWIFT_SCRATCH}" ${LLVS_SWIFT_FLAGS}
        COMMAND "${CMAKE_COMMAND}" "-DBUILT=${LLVS_SWIFT_SCRATCH}/release/lib${product}.so" "-DDESTINATION=${folder}"
                "-DREAL_NAME=${LLVS_REAL_NAME}" "-DSONAME=${LLVS_SONAME}" "-DSTRIP=${CMAKE_STRIP}"
                "-DOBJCOPY=${CMAKE_OBJCOPY}"
                -P "${PROJECT_SOURCE_DIR}/cmake/StageLibrary.cmake"
        BYPRODUCTS "${folder}/${LLVS_REAL_NAME}" "${folder}/${LLVS_SONAME}" "${folder}/libllvs.so"
        COMMENT "Building ${LLVS_REAL_NAME} with SwiftPM (${product})"
        USES_TERMINAL VERBATIM)
    add_dependencies(${target} llvs_runtime)
endfunction()

if(LLVS_NETWORK)
    llvs_swift_library(llvs_library llvs "${LLVS_LIBRARY_DIR}" 1 ALL)
    # The library without the network, of the same modules: for scripts/suites/32-local.
    llvs_swift_library(llvs_local_library llvs-local "${PROJECT_BINARY_DIR}/local" 1)
    add_dependencies(llvs_local_library llvs_library)
else()
    llvs_swift_library(llvs_library llvs-local "${LLVS_LIBRARY_DIR}" size ALL)
endif()
add_library(llvs SHARED IMPORTED GLOBAL)
add_library(llvs::llvs ALIAS llvs)
add_dependencies(llvs llvs_library)
set_target_properties(llvs PROPERTIES
    IMPORTED_LOCATION "${LLVS_LIBRARY_DIR}/${LLVS_REAL_NAME}"
    IMPORTED_SONAME "${LLVS_SONAME}"
    INTERFACE_INCLUDE_DIRECTORIES "${PROJECT_SOURCE_DIR}/include")
