pawl_fuzz_target(base64 SOURCES fuzz/fuzz_base64.c)
