foreach(test policies pins repair copy wait)
    pawl_unit_test(test_${test} SOURCES unit/test_${test}.c LIBRARIES pawl_sim)
endforeach()
pawl_unit_test(test_care_memory SOURCES unit/test_care_memory.c TIMEOUT 300
    LIBRARIES pawl_sim -Wl,--wrap=malloc -Wl,--wrap=calloc -Wl,--wrap=realloc)
