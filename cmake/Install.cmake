# What a consumer outside this tree needs: headers, C++ wrapper, library, SQLite extension, pkg-config file, CMake package.
# Everything installed finds its neighbours relative to itself, so the installed tree can be moved.

# install(FILES), since CMake installs no imported targets.
install(FILES include/llvs.h include/llvs_testing.h DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(FILES bindings/c/llvs.hpp DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(DIRECTORY include/llvs bindings/c/llvs DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(FILES "${LLVS_LIBRARY_DIR}/${LLVS_REAL_NAME}" DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(FILES "${LLVS_LIBRARY_DIR}/${LLVS_SONAME}" "${LLVS_LIBRARY_DIR}/libllvs.so"
    DESTINATION "${CMAKE_INSTALL_LIBDIR}")
# For debuggers, and not installed by default: cmake --install build --component debug
install(FILES "${LLVS_LIBRARY_DIR}/${LLVS_REAL_NAME}.debug" DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT debug EXCLUDE_FROM_ALL)
install(TARGETS llvs_sqlite LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
# For hosts that are looked at by valgrind or ThreadSanitizer.
install(DIRECTORY bindings/c/suppressions/ DESTINATION "${CMAKE_INSTALL_DATADIR}/llvs")
install(FILES LICENSE THIRD-PARTY-NOTICES.txt DESTINATION "${CMAKE_INSTALL_DOCDIR}")

file(RELATIVE_PATH LLVS_PC_TO_PREFIX "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
configure_file(cmake/llvs.pc.in "${PROJECT_BINARY_DIR}/llvs.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/llvs.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")

include(CMakePackageConfigHelpers)
set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/llvs")
configure_package_config_file(cmake/llvsConfig.cmake.in "${PROJECT_BINARY_DIR}/llvsConfig.cmake"
    INSTALL_DESTINATION "${package_dir}"
    PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_LIBDIR)
# Before 1.0 a minor version may change the API.
write_basic_package_version_file("${PROJECT_BINARY_DIR}/llvsConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/llvsConfig.cmake" "${PROJECT_BINARY_DIR}/llvsConfigVersion.cmake"
    DESTINATION "${package_dir}")
