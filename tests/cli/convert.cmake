# As pawl_cli_test of cli.cmake, which is read before this one or after it.
find_package(Python3 COMPONENTS Interpreter REQUIRED)
foreach(part convert)
    add_test(NAME cli_${part} COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/cli/run_cases.py
                                      ${PAWL_PROGRAM} ${PROJECT_SOURCE_DIR}/tests/cli/cases/${part}.cases)
    add_test(NAME cli_${part}_signals COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/cli/convert_signals.py
                                              ${PAWL_PROGRAM})
    set_tests_properties(cli_${part} cli_${part}_signals PROPERTIES TIMEOUT 120 LABELS cli)
endforeach()
