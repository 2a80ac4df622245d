pawl_unit_test(test_bigram SOURCES unit/test_bigram.c LIBRARIES pawl_trainer)
pawl_unit_test(test_optimizers SOURCES unit/test_optimizers.c LIBRARIES pawl_trainer)
pawl_unit_test(test_failpoints SOURCES unit/test_failpoints.c LIBRARIES pawl_trainer)
