pawl_fuzz_target(pins SOURCES fuzz/fuzz_pins.c)
