pawl_unit_test(test_llmcp35_golden SOURCES unit/test_llmcp35_golden.c LABELS llmcp35)
pawl_unit_test(test_llmcp35_replay SOURCES unit/test_llmcp35_replay.c LABELS llmcp35 LIBRARIES pawl_trainer m)
