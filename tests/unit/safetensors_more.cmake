pawl_unit_test(test_cast SOURCES unit/test_cast.c)
pawl_unit_test(test_slice SOURCES unit/test_slice.c)
pawl_unit_test(test_stored SOURCES unit/test_stored.c)
pawl_unit_test(test_sink SOURCES unit/test_sink.c)
