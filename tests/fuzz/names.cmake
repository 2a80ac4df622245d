pawl_fuzz_target(names SOURCES fuzz/fuzz_names.c)
