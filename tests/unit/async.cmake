pawl_unit_test(test_async SOURCES unit/test_async.c LIBRARIES pawl_sim -Wl,--wrap=pthread_create)
