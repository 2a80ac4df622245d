pawl_fuzz_target(safetensors SOURCES fuzz/fuzz_safetensors.c)
