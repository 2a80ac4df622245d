pawl_unit_test(test_stream SOURCES unit/test_stream.c)
