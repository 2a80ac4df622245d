pawl_fuzz_target(index SOURCES fuzz/fuzz_index.c)
