pawl_unit_test(test_convert_crash SOURCES unit/test_convert_crash.c LIBRARIES pawl_sim)
