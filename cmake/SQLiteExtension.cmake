# libllvs_sqlite.so: functions of SQLite over stores (bindings/sqlite, docs/sqlite.md). It brings no SQLite: it is called with the host's,
# and finds the library beside itself.
find_path(SQLITE3_EXTENSION_INCLUDE_DIR sqlite3ext.h REQUIRED)
file(GLOB extension_parts CONFIGURE_DEPENDS bindings/sqlite/*.c)
add_library(llvs_sqlite MODULE ${extension_parts})
target_link_libraries(llvs_sqlite PRIVATE llvs::llvs)
target_include_directories(llvs_sqlite PRIVATE "${SQLITE3_EXTENSION_INCLUDE_DIR}")
target_compile_options(llvs_sqlite PRIVATE -Wall -Wextra -Werror -std=c99 -pedantic -O2)
target_link_options(llvs_sqlite PRIVATE -s)
set_target_properties(llvs_sqlite PROPERTIES
    LIBRARY_OUTPUT_DIRECTORY "${LLVS_LIBRARY_DIR}" C_VISIBILITY_PRESET hidden
    BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN")
