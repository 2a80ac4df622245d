pawl_fuzz_target(trainer_state SOURCES fuzz/fuzz_trainer_state.c)
