find_package(Python3 COMPONENTS Interpreter REQUIRED)

set(PAWL_CLI_TIMEOUT 120)
if(CMAKE_CROSSCOMPILING)
    set(PAWL_CLI_TIMEOUT 900) # hundreds of processes, each translated anew
endif()

# pawl_cli_test(<name> <script> <argument>...): a script that runs pawl; several, so that they run beside each other.
function(pawl_cli_test name script)
    add_test(NAME cli_${name} COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/cli/${script}
                                      ${PAWL_PROGRAM} ${ARGN})
    set_tests_properties(cli_${name} PROPERTIES TIMEOUT ${PAWL_CLI_TIMEOUT} LABELS cli)
endfunction()

foreach(cases usage look verify ckpt care block-sums tokens train llmcp35 hostile)
    pawl_cli_test(${cases} run_cases.py ${PROJECT_SOURCE_DIR}/tests/cli/cases/${cases}.cases)
endforeach()
foreach(optimizer adamw sgd momentum)
    pawl_cli_test(proof_${optimizer} proof.py ${optimizer})
endforeach()
pawl_cli_test(proof_saves proof.py saves)
pawl_cli_test(proof_async proof.py async)
pawl_cli_test(bench bench.py)
pawl_cli_test(signals signals.py)
pawl_cli_test(progress progress.py)
pawl_cli_test(terminal terminal.py)
pawl_cli_test(words documents.py ${PROJECT_SOURCE_DIR})
pawl_cli_test(examples examples.py ${PROJECT_SOURCE_DIR})
