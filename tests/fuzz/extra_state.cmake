pawl_fuzz_target(extra_state SOURCES fuzz/fuzz_extra_state.c)
