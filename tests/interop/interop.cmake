# Against other implementations, from build/peers (scripts/peers makes it): ctest -L peers, or scripts/test --peers.
set(PAWL_PEERS ${PROJECT_SOURCE_DIR}/build/peers/bin/python)
if(NOT PAWL_SANITIZE) # a sanitizer's runtime can't be loaded into a Python that was not built with it
    add_test(NAME peers_safetensors
             COMMAND ${PAWL_PEERS} ${CMAKE_CURRENT_LIST_DIR}/differential.py --library $<TARGET_FILE:pawl> --cases 100000)
    set_tests_properties(peers_safetensors PROPERTIES LABELS peers TIMEOUT 600)
    if(PAWL_BENCH)
        add_test(NAME peers_bench_saves
                 COMMAND ${PAWL_PEERS} ${CMAKE_CURRENT_LIST_DIR}/bench_saves.py --library $<TARGET_FILE:pawl> --limits $<TARGET_FILE:bench_limits>)
        set_tests_properties(peers_bench_saves PROPERTIES LABELS peers TIMEOUT 600)
    endif()
endif()
