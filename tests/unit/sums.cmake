pawl_unit_test(test_xxh64 SOURCES unit/test_xxh64.c)
pawl_unit_test(test_block_sums SOURCES unit/test_block_sums.c)
pawl_unit_test(test_sums_save SOURCES unit/test_sums_save.c LIBRARIES pawl_sim)
pawl_unit_test(test_lazy SOURCES unit/test_lazy.c LIBRARIES pawl_sim)
