pawl_fuzz_target(llmcp35 SOURCES fuzz/fuzz_llmcp35.c)
