pawl_fuzz_target(failpoints SOURCES fuzz/fuzz_failpoints.c LIBRARIES pawl_trainer)
