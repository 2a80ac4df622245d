pawl_fuzz_target(sum_lines SOURCES fuzz/fuzz_sum_lines.c)
