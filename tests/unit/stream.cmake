pawl_unit_test(test_stream SOURCES unit/test_stream.c)
pawl_unit_test(test_stream_document SOURCES unit/test_stream_document.c)
pawl_unit_test(test_stream_memory SOURCES unit/test_stream_memory.c
    LIBRARIES -Wl,--wrap=malloc -Wl,--wrap=calloc -Wl,--wrap=realloc)
