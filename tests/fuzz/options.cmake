pawl_fuzz_target(options SOURCES fuzz/fuzz_options.c ../cli/arguments.c LIBRARIES pawl_trainer m)
