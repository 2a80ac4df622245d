pawl_unit_test(test_async SOURCES unit/test_async.c LIBRARIES pawl_sim -Wl,--wrap=pthread_create TIMEOUT 60)
pawl_unit_test(test_async_process SOURCES unit/test_async_process.c LIBRARIES pawl_sim TIMEOUT 300)
pawl_unit_test(test_async_growth SOURCES unit/test_async_growth.c LIBRARIES pawl_sim TIMEOUT 300)
pawl_unit_test(test_async_growth_long SOURCES unit/test_async_growth.c LIBRARIES pawl_sim
    DEFINITIONS SAVES=1000 LABELS long TIMEOUT 1200)
pawl_unit_test(test_async_power SOURCES unit/test_async_power.c LIBRARIES pawl_sim TIMEOUT 600)
pawl_unit_test(test_thread SOURCES unit/test_thread.c LABELS os)
pawl_unit_test(test_kept SOURCES unit/test_kept.c LABELS os)
pawl_unit_test(test_async_memory SOURCES unit/test_async_memory.c
    LIBRARIES pawl_sim -Wl,--wrap=malloc -Wl,--wrap=calloc -Wl,--wrap=realloc -Wl,--wrap=mmap)
