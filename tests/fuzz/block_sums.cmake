pawl_fuzz_target(block_sums SOURCES fuzz/fuzz_block_sums.c)
