# Copies the library that SwiftPM built to the folder of products, stripped, under its versioned names, and its symbols into a file beside
# it (NAME.debug). Debuggers find that file by its name, and need it to follow calls through the library: cmake/sections.ld.
# Does nothing when the copy is up to date, so that nothing is linked anew without need.
set(real "${DESTINATION}/${REAL_NAME}")
if(NOT EXISTS "${BUILT}")
    message(FATAL_ERROR "SwiftPM did not make ${BUILT}")
endif()
if("${BUILT}" IS_NEWER_THAN "${real}")
    # Written aside and renamed: a program that has the old library loaded keeps it whole.
    configure_file("${BUILT}" "${real}.new" COPYONLY)
    # The runtime's and the shims' debug information is incomplete, and too new for some valgrinds.
    execute_process(COMMAND "${STRIP}" --strip-debug "${real}.new" COMMAND_ERROR_IS_FATAL ANY)
    execute_process(COMMAND "${OBJCOPY}" --only-keep-debug "${real}.new" "${real}.debug" COMMAND_ERROR_IS_FATAL ANY)
    execute_process(COMMAND "${STRIP}" --strip-unneeded "${real}.new" COMMAND_ERROR_IS_FATAL ANY)
    execute_process(COMMAND "${OBJCOPY}" "--add-gnu-debuglink=${real}.debug" "${real}.new" COMMAND_ERROR_IS_FATAL ANY)
    file(TOUCH_NOCREATE "${real}.new")
    file(RENAME "${real}.new" "${real}")
endif()
foreach(link_and_target IN ITEMS "${SONAME}:${REAL_NAME}" "libllvs.so:${SONAME}")
    string(REPLACE ":" ";" pair "${link_and_target}")
    list(GET pair 0 link)
    list(GET pair 1 target)
    file(CREATE_LINK "${target}" "${DESTINATION}/${link}" SYMBOLIC)
endforeach()
