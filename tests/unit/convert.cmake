pawl_unit_test(test_convert_crash SOURCES unit/test_convert_crash.c LIBRARIES pawl_sim)
pawl_unit_test(test_convert_model SOURCES unit/test_convert_model.c)
pawl_unit_test(test_index_write SOURCES unit/test_index_write.c)
pawl_unit_test(test_convert_memory SOURCES unit/test_convert_memory.c
    LIBRARIES -Wl,--wrap=malloc -Wl,--wrap=calloc -Wl,--wrap=realloc)
pawl_unit_test(test_convert_large SOURCES unit/test_convert_large.c)
pawl_unit_test(test_pattern SOURCES unit/test_pattern.c)
