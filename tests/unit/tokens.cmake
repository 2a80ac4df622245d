pawl_unit_test(test_pack SOURCES unit/test_pack.c)
