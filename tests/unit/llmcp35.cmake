pawl_unit_test(test_llmcp35_golden SOURCES unit/test_llmcp35_golden.c LABELS llmcp35)
