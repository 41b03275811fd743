# Programs in C and C++: tests, examples, benchmarks. A new one is a new file; nothing is listed here.
#
#   Tests/C/*.c, *.cpp      one cmocka program each; files in Tests/C/support are linked to all of them
#   Tests/C/counting/*.c    replace calls in the programs that count them
#   Tests/Faults/test_*.c   killed, cut off and failing system calls (scripts/suites/27-faults, scripts/soak); the other
#                           files there are linked to all of them
#   Tests/Damage/*.c        one program: damaged bytes (scripts/suites/28-damage, scripts/soak)
#   Tests/Concurrency/test_*.c  many threads, handles and processes at once, copies, full disks (scripts/suites/28-concurrency);
#                           the other files there are linked to all of them
#   Tests/Concurrency/Synced/*.c  one program: two stores kept in step by a real Syncthing (scripts/suites/29-syncthing)
#   examples/c/*.c          complete programs, run by the tests in a fresh folder of their own
#   examples/demo/*.c       parts of the demo (scripts/demo runs them)
#   Benchmarks/bench*.c     print figures (scripts/bench runs them); the other files there are linked to all of them

enable_testing()
set(strict_warnings -Wall -Wextra -Werror)
find_package(PkgConfig REQUIRED)
pkg_check_modules(SQLITE3 REQUIRED IMPORTED_TARGET sqlite3)
find_library(CMOCKA_LIBRARY cmocka REQUIRED)
find_package(Threads REQUIRED)

# llvs_program(<target> <folder of the product> <source>...)
function(llvs_program target folder)
    add_executable(${target} ${ARGN})
    target_link_libraries(${target} PRIVATE llvs::llvs Threads::Threads m)
    target_include_directories(${target} PRIVATE bindings/c)
    # `extern "C"` consumers must be able to use strict ISO C: no GNU extensions, all warnings are errors.
    target_compile_options(${target} PRIVATE ${strict_warnings}
        $<$<COMPILE_LANGUAGE:C>:-std=c99 -pedantic> $<$<COMPILE_LANGUAGE:CXX>:-std=c++17 -pedantic>)
    # POSIX (mkdtemp, fork, clock_gettime) is asked for by name under -std=c99.
    target_compile_definitions(${target} PRIVATE _POSIX_C_SOURCE=200809L
        LLVS_SOURCE_DIR="${PROJECT_SOURCE_DIR}" LLVS_BINARY_DIR="${PROJECT_BINARY_DIR}")
    set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/${folder}")
endfunction()

# llvs_register(<target> <label> [<part> <variable>]): a ctest of that name, in an empty folder of its own; with a part it is named by
# that, too, and the program finds the part in the variable of its environment.
function(llvs_register target label)
    set(name ${target})
    if(ARGC GREATER 2)
        set(name ${target}_${ARGV2})
    endif()
    set(folder "${PROJECT_BINARY_DIR}/run/${name}")
    add_test(NAME ${name}
        COMMAND "${CMAKE_COMMAND}" -DFOLDER=${folder} -DPROGRAM=$<TARGET_FILE:${target}>
                -P "${PROJECT_SOURCE_DIR}/cmake/RunInEmptyFolder.cmake")
    # The last resort for what hangs. A program that waits for children ends those that loop or hang, by what they do (Tests/C/child.h).
    set_tests_properties(${name} PROPERTIES LABELS ${label} TIMEOUT 3600)
    if(ARGC GREATER 2)
        set_tests_properties(${name} PROPERTIES ENVIRONMENT "${ARGV3}=${ARGV2}")
    endif()
endfunction()

file(GLOB support CONFIGURE_DEPENDS Tests/C/support/*.c)
file(GLOB tests CONFIGURE_DEPENDS Tests/C/*.c Tests/C/*.cpp)
foreach(source IN LISTS tests)
    get_filename_component(name "${source}" NAME)
    string(REPLACE "." "_" name "test_${name}")
    string(REGEX REPLACE "^test_test_" "test_" name "${name}")
    llvs_program(${name} tests "${source}" ${support})
    target_include_directories(${name} PRIVATE Tests/C)
    target_link_libraries(${name} PRIVATE ${CMOCKA_LIBRARY})
    # Some hundred processes, so that its parts are to run beside each other.
    if(name STREQUAL "test_falling_memory_c")
        foreach(storage file sqlite memory host)
            llvs_register(${name} c-tests ${storage} LLVS_MEMORY_STORAGE)
            set_tests_properties(${name}_${storage} PROPERTIES TIMEOUT 36000)
        endforeach()
    else()
        llvs_register(${name} c-tests)
    endif()
endforeach()

# Follows frame pointers from its callback to its call.
target_compile_options(test_frames_c PRIVATE -fno-omit-frame-pointer)
target_sources(test_costs_c PRIVATE Tests/C/counting/calls.c Tests/C/counting/allocations.c)
# As Tests/Faults: SQLite's calls are counted, too.
target_link_libraries(test_costs_c PRIVATE PkgConfig::SQLITE3)
target_link_options(test_costs_c PRIVATE LINKER:--no-as-needed)
# Hosts that contain functions named as SQLite's, that find none, and that find another.
set_target_properties(test_other_sqlite_c test_no_sqlite_c PROPERTIES ENABLE_EXPORTS ON)
foreach(kind old unsafe partial)
    string(TOUPPER ${kind} define)
    add_library(sqlite_${kind} MODULE Tests/C/sqlite/stand_in.c)
    target_compile_definitions(sqlite_${kind} PRIVATE STAND_IN_${define})
    target_compile_options(sqlite_${kind} PRIVATE ${strict_warnings} -std=c99 -pedantic)
    set_target_properties(sqlite_${kind} PROPERTIES PREFIX "" LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests")
    add_dependencies(test_no_sqlite_c sqlite_${kind})
endforeach()
# Their functions named as the C library's are to be found before those, also by the libraries.
file(GLOB faults CONFIGURE_DEPENDS Tests/Faults/test_*.c)
file(GLOB fault_parts CONFIGURE_DEPENDS Tests/Faults/*.c)
list(REMOVE_ITEM fault_parts ${faults})
add_library(fault_parts OBJECT ${fault_parts})
target_link_libraries(fault_parts PRIVATE llvs::llvs)
target_compile_options(fault_parts PRIVATE ${strict_warnings} -std=c99 -pedantic -O2)
foreach(source IN LISTS faults)
    get_filename_component(name "${source}" NAME_WE)
    llvs_program(${name} faults "${source}" $<TARGET_OBJECTS:fault_parts>)
    target_include_directories(${name} PRIVATE Tests/Faults)
    target_compile_options(${name} PRIVATE -O2)
    # Linked, SQLite is loaded before the library opens it, and finds the functions of the program as others do.
    target_link_libraries(${name} PRIVATE ${CMAKE_DL_LIBS} PkgConfig::SQLITE3)
    target_link_options(${name} PRIVATE LINKER:--no-as-needed)
    set_target_properties(${name} PROPERTIES ENABLE_EXPORTS ON)
endforeach()

file(GLOB damage_parts CONFIGURE_DEPENDS Tests/Damage/*.c)
llvs_program(test_damage damage ${damage_parts} Tests/Faults/book.c Tests/Faults/files.c)
target_include_directories(test_damage PRIVATE Tests/Damage Tests/Faults)
target_link_libraries(test_damage PRIVATE PkgConfig::SQLITE3)
target_compile_options(test_damage PRIVATE -O2)

file(GLOB crowds CONFIGURE_DEPENDS Tests/Concurrency/test_*.c)
file(GLOB crowd_parts CONFIGURE_DEPENDS Tests/Concurrency/*.c)
list(REMOVE_ITEM crowd_parts ${crowds})
add_library(crowd_parts OBJECT ${crowd_parts} Tests/Faults/book.c Tests/Faults/files.c)
target_link_libraries(crowd_parts PRIVATE llvs::llvs)
target_compile_options(crowd_parts PRIVATE ${strict_warnings} -std=c99 -pedantic -O2)
foreach(source IN LISTS crowds)
    get_filename_component(name "${source}" NAME_WE)
    llvs_program(${name} concurrency "${source}" $<TARGET_OBJECTS:crowd_parts>)
    target_compile_options(${name} PRIVATE -O2)
endforeach()

file(GLOB synced_parts CONFIGURE_DEPENDS Tests/Concurrency/Synced/*.c)
llvs_program(test_synced synced ${synced_parts} $<TARGET_OBJECTS:crowd_parts>)
target_compile_options(test_synced PRIVATE -O2)

file(GLOB examples CONFIGURE_DEPENDS examples/c/*.c examples/c/*.cpp)
foreach(source IN LISTS examples)
    get_filename_component(name "${source}" NAME)
    string(REPLACE "." "_" name "example_${name}")
    llvs_program(${name} examples "${source}")
    llvs_register(${name} examples)
endforeach()

file(GLOB demos CONFIGURE_DEPENDS examples/demo/*.c)
foreach(source IN LISTS demos)
    get_filename_component(name "${source}" NAME_WE)
    llvs_program(demo_${name} demo_programs "${source}")
endforeach()

file(GLOB benchmarks CONFIGURE_DEPENDS Benchmarks/bench*.c)
file(GLOB benchmark_parts CONFIGURE_DEPENDS Benchmarks/*.c Tests/C/counting/calls.c)
list(REMOVE_ITEM benchmark_parts ${benchmarks})
add_library(benchmark_parts OBJECT ${benchmark_parts})
target_link_libraries(benchmark_parts PRIVATE llvs::llvs PkgConfig::SQLITE3)
target_include_directories(benchmark_parts PRIVATE Tests/C)
target_compile_options(benchmark_parts PRIVATE ${strict_warnings} -Wno-missing-field-initializers -std=c99 -pedantic -O2)
target_compile_definitions(benchmark_parts PRIVATE _POSIX_C_SOURCE=200809L
    LLVS_SOURCE_DIR="${PROJECT_SOURCE_DIR}" LLVS_BINARY_DIR="${PROJECT_BINARY_DIR}")
foreach(source IN LISTS benchmarks)
    get_filename_component(name "${source}" NAME_WE)
    llvs_program(${name} benchmarks "${source}" $<TARGET_OBJECTS:benchmark_parts>)
    target_link_libraries(${name} PRIVATE PkgConfig::SQLITE3)
    target_compile_options(${name} PRIVATE -O2)
endforeach()

# Loads the extension when it runs.
add_dependencies(bench_sqlite llvs_sqlite)

# Loads the library by dlopen, and so must not be linked to it.
add_executable(benchmark_startup Benchmarks/startup/startup.c)
target_link_libraries(benchmark_startup PRIVATE ${CMAKE_DL_LIBS})
target_compile_options(benchmark_startup PRIVATE ${strict_warnings} -std=c99 -pedantic -O2)
target_compile_definitions(benchmark_startup PRIVATE _POSIX_C_SOURCE=200809L LLVS_BINARY_DIR="${PROJECT_BINARY_DIR}")
add_dependencies(benchmark_startup llvs_library)
set_target_properties(benchmark_startup PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/benchmark_helpers")
