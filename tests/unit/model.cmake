pawl_unit_test(test_tensor_bytes SOURCES unit/test_tensor_bytes.c)
pawl_unit_test(test_set SOURCES unit/test_set.c)
pawl_unit_test(test_split SOURCES unit/test_split.c)
pawl_unit_test(test_model SOURCES unit/test_model.c)
pawl_unit_test(test_write SOURCES unit/test_write.c)
pawl_unit_test(test_kind SOURCES unit/test_kind.c)
pawl_unit_test(test_model_faults SOURCES unit/test_model_faults.c
    LIBRARIES pawl_sim -Wl,--wrap=malloc -Wl,--wrap=calloc -Wl,--wrap=realloc)
