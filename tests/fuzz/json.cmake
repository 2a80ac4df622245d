pawl_fuzz_target(json SOURCES fuzz/fuzz_json.c)
