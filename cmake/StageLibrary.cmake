# Copies the library that SwiftPM built to the folder of products, stripped, under its versioned names.
# Does nothing when the copy is up to date, so that nothing is linked anew without need.
set(real "${DESTINATION}/${REAL_NAME}")
if(NOT EXISTS "${BUILT}")
    message(FATAL_ERROR "SwiftPM did not make ${BUILT}")
endif()
if("${BUILT}" IS_NEWER_THAN "${real}")
    # Written aside and renamed: a program that has the old library loaded keeps it whole.
    configure_file("${BUILT}" "${real}.new" COPYONLY)
    execute_process(COMMAND "${STRIP}" --strip-unneeded "${real}.new" COMMAND_ERROR_IS_FATAL ANY)
    file(TOUCH_NOCREATE "${real}.new")
    file(RENAME "${real}.new" "${real}")
endif()
foreach(link_and_target IN ITEMS "${SONAME}:${REAL_NAME}" "libllvs.so:${SONAME}")
    string(REPLACE ":" ";" pair "${link_and_target}")
    list(GET pair 0 link)
    list(GET pair 1 target)
    file(CREATE_LINK "${target}" "${DESTINATION}/${link}" SYMBOLIC)
endforeach()
