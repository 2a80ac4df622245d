pawl_fuzz_target(pack SOURCES fuzz/fuzz_pack.c)
