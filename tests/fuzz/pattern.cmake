pawl_fuzz_target(pattern SOURCES fuzz/fuzz_pattern.c)
