pawl_fuzz_target(metrics SOURCES fuzz/fuzz_metrics.c)
