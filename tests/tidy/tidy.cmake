# Tests about the source itself; they build and start programs, and say nothing of a processor.
if(CMAKE_CROSSCOMPILING)
    return()
endif()
find_package(Python3 REQUIRED COMPONENTS Interpreter)

# pawl_tidy_test(<name> <command>...): run from the top of the tree.
function(pawl_tidy_test name)
    add_test(NAME ${name} COMMAND ${ARGN} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    set_tests_properties(${name} PROPERTIES TIMEOUT 300 LABELS "no-sanitizer")
endfunction()

pawl_tidy_test(tidy_layers ${Python3_EXECUTABLE} tests/tidy/layers.py)
pawl_tidy_test(tidy_layers_bites ${Python3_EXECUTABLE} tests/tidy/layers.py --self-test)
pawl_tidy_test(tidy_symbols ${Python3_EXECUTABLE} tests/tidy/symbols.py $<TARGET_FILE:pawl>)
pawl_tidy_test(tidy_words ${Python3_EXECUTABLE} tests/tidy/words.py)
pawl_tidy_test(tidy_headers ${Python3_EXECUTABLE} tests/tidy/headers.py ${PROJECT_BINARY_DIR} ${CMAKE_C_COMPILER})
pawl_tidy_test(tidy_install ${Python3_EXECUTABLE} tests/tidy/install.py ${PROJECT_BINARY_DIR} ${CMAKE_C_COMPILER})
pawl_tidy_test(tidy_links ${Python3_EXECUTABLE} tests/tidy/links.py)
pawl_tidy_test(tidy_readme ${Python3_EXECUTABLE} tests/tidy/readme.py ${PROJECT_BINARY_DIR} ${CMAKE_C_COMPILER})
