pawl_unit_test(test_tensor_bytes SOURCES unit/test_tensor_bytes.c)
