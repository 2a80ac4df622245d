pawl_fuzz_target(ckpt_manifest SOURCES fuzz/fuzz_ckpt_manifest.c)
