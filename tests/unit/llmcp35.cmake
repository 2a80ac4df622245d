pawl_unit_test(test_llmcp35_golden SOURCES unit/test_llmcp35_golden.c LABELS llmcp35)
pawl_unit_test(test_llmcp35_replay SOURCES unit/test_llmcp35_replay.c LABELS llmcp35 LIBRARIES pawl_trainer m)
# The same where libm has no fused multiply-add: only what is marked as depending on it may differ.
add_test(NAME test_llmcp35_replay_other_libm COMMAND test_llmcp35_replay
         WORKING_DIRECTORY ${PROJECT_BINARY_DIR}/test-folders/test_llmcp35_replay)
set_tests_properties(test_llmcp35_replay_other_libm PROPERTIES TIMEOUT 120 LABELS llmcp35
                     ENVIRONMENT "GLIBC_TUNABLES=glibc.cpu.hwcaps=-FMA,-AVX2,-AVX2_Usable,-FMA4")
# The replay built by every compiler here, at several levels.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
add_test(NAME llmcp35_builds
         COMMAND ${Python3_EXECUTABLE} tests/unit/llmcp35_builds.py ${PROJECT_BINARY_DIR}/test-folders/llmcp35_builds
                 $<TARGET_FILE:pawl_static>
         WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
set_tests_properties(llmcp35_builds PROPERTIES TIMEOUT 300 LABELS "llmcp35;no-sanitizer;long")
# A second decoder, on files with faults.
add_executable(llmcp35_verdicts ${CMAKE_CURRENT_LIST_DIR}/llmcp35_verdicts.c)
target_link_libraries(llmcp35_verdicts PRIVATE pawl_static)
pawl_startable(llmcp35_verdicts PAWL_LLMCP35_VERDICTS)
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/test-folders/llmcp35_oracle)
add_test(NAME llmcp35_oracle COMMAND ${Python3_EXECUTABLE} tests/unit/llmcp35_oracle.py ${PAWL_LLMCP35_VERDICTS} 2000
         WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
add_test(NAME llmcp35_oracle_long
         COMMAND ${Python3_EXECUTABLE} tests/unit/llmcp35_oracle.py ${PAWL_LLMCP35_VERDICTS} 30000 36
         WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
set_tests_properties(llmcp35_oracle llmcp35_oracle_long PROPERTIES TIMEOUT 1200 LABELS llmcp35)
set_tests_properties(llmcp35_oracle_long PROPERTIES LABELS "llmcp35;long")
pawl_unit_test(test_llmcp35_decode SOURCES unit/test_llmcp35_decode.c LABELS llmcp35 LIBRARIES m)
pawl_unit_test(test_llmcp35_save SOURCES unit/test_llmcp35_save.c LABELS llmcp35 LIBRARIES pawl_sim)
pawl_unit_test(test_llmcp35_training SOURCES unit/test_llmcp35_training.c LABELS llmcp35 LIBRARIES m)
pawl_unit_test(test_llmcp35_memory SOURCES unit/test_llmcp35_memory.c LABELS llmcp35
               LIBRARIES -Wl,--wrap=malloc -Wl,--wrap=calloc -Wl,--wrap=realloc)
