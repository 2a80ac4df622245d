pawl_fuzz_target(shard SOURCES fuzz/fuzz_shard.c)
pawl_fuzz_target(stream_document SOURCES fuzz/fuzz_stream_document.c)
