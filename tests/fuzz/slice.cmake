pawl_fuzz_target(slice SOURCES fuzz/fuzz_slice.c)
