# The simulated disk and the table of faults: for pawl_unit_test(... LIBRARIES pawl_sim).
add_library(pawl_sim STATIC
    ${CMAKE_CURRENT_LIST_DIR}/faultos.c
    ${CMAKE_CURRENT_LIST_DIR}/simdisk.c
    ${CMAKE_CURRENT_LIST_DIR}/simhelp.c
    ${CMAKE_CURRENT_LIST_DIR}/simimage.c
    ${CMAKE_CURRENT_LIST_DIR}/simtrace.c)
target_include_directories(pawl_sim PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src
                                            ${PROJECT_SOURCE_DIR}/tests)
target_link_libraries(pawl_sim PUBLIC Threads::Threads)
