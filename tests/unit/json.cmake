pawl_unit_test(test_json_document SOURCES unit/test_json_document.c)
pawl_unit_test(test_json_print SOURCES unit/test_json_print.c)
pawl_unit_test(test_json_reader SOURCES unit/test_json_reader.c)
