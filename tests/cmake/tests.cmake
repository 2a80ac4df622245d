find_package(PkgConfig REQUIRED)
pkg_check_modules(CMOCKA REQUIRED IMPORTED_TARGET cmocka)

set(PAWL_GOLDEN ${PROJECT_SOURCE_DIR}/tests/golden)

# pawl_startable(<target> <result>): the file by which another program starts this one: itself, or, built for another
# processor, a script that hands it to the emulator.
function(pawl_startable target ret)
    set(file $<TARGET_FILE:${target}>)
    if(CMAKE_CROSSCOMPILING_EMULATOR)
        set(file ${PROJECT_BINARY_DIR}/emulated/$<TARGET_FILE_NAME:${target}>)
        list(JOIN CMAKE_CROSSCOMPILING_EMULATOR " " emulator)
        file(GENERATE OUTPUT ${file} CONTENT "#!/bin/sh\nexec ${emulator} $<TARGET_FILE:${target}> \"$@\"\n"
             FILE_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
    endif()
    set(${ret} ${file} PARENT_SCOPE)
endfunction()
pawl_startable(pawl_program PAWL_PROGRAM)

# pawl_unit_test(<name> SOURCES <file>... [LABELS <label>...] [LIBRARIES <target>...])
# A cmocka program that reaches inside the library. It runs in a fresh folder of its own (PAWL_TEST_DIR is the build's).
function(pawl_unit_test name)
    cmake_parse_arguments(TEST "" "TIMEOUT" "SOURCES;LABELS;LIBRARIES;DEFINITIONS" ${ARGN})
    list(TRANSFORM TEST_SOURCES PREPEND ${PROJECT_SOURCE_DIR}/tests/)
    add_executable(${name} ${TEST_SOURCES})
    target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/tests)
    target_link_libraries(${name} PRIVATE ${TEST_LIBRARIES} pawl_static PkgConfig::CMOCKA)
    target_compile_definitions(${name} PRIVATE PAWL_GOLDEN="${PAWL_GOLDEN}" ${TEST_DEFINITIONS})
    set(folder ${PROJECT_BINARY_DIR}/test-folders/${name})
    file(MAKE_DIRECTORY ${folder})
    add_test(NAME ${name} COMMAND ${name} WORKING_DIRECTORY ${folder})
    if(NOT TEST_TIMEOUT)
        set(TEST_TIMEOUT 120)
    endif()
    set_tests_properties(${name} PROPERTIES TIMEOUT ${TEST_TIMEOUT} LABELS "${TEST_LABELS}")
endfunction()
