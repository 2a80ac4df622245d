pawl_unit_test(test_tensor_bytes SOURCES unit/test_tensor_bytes.c)
pawl_unit_test(test_set SOURCES unit/test_set.c)
pawl_unit_test(test_split SOURCES unit/test_split.c)
pawl_unit_test(test_model SOURCES unit/test_model.c)
