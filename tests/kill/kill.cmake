# A real process, killed at random instants and resumed. `kill` runs always, `kill_long` with the long suite.
foreach(program kill_worker kill_test)
    add_executable(${program} ${CMAKE_CURRENT_LIST_DIR}/${program}.c)
    target_link_libraries(${program} PRIVATE pawl_static)
endforeach()
foreach(name kill kill_long kill_async kill_async_long)
    set(folder ${PROJECT_BINARY_DIR}/test-folders/${name})
    file(MAKE_DIRECTORY ${folder})
endforeach()
add_test(NAME kill COMMAND kill_test $<TARGET_FILE:kill_worker> WORKING_DIRECTORY ${PROJECT_BINARY_DIR}/test-folders/kill)
set_tests_properties(kill PROPERTIES TIMEOUT 300)
add_test(NAME kill_long COMMAND kill_test $<TARGET_FILE:kill_worker> 5000
         WORKING_DIRECTORY ${PROJECT_BINARY_DIR}/test-folders/kill_long)
set_tests_properties(kill_long PROPERTIES TIMEOUT 3600 LABELS long)
add_test(NAME kill_async COMMAND kill_test --async $<TARGET_FILE:kill_worker> 100
         WORKING_DIRECTORY ${PROJECT_BINARY_DIR}/test-folders/kill_async)
set_tests_properties(kill_async PROPERTIES TIMEOUT 300)
add_test(NAME kill_async_long COMMAND kill_test --async $<TARGET_FILE:kill_worker> 5000
         WORKING_DIRECTORY ${PROJECT_BINARY_DIR}/test-folders/kill_async_long)
set_tests_properties(kill_async_long PROPERTIES TIMEOUT 3600 LABELS long)
