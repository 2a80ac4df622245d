pawl_unit_test(test_base_fail SOURCES unit/test_base_fail.c LABELS base)
pawl_unit_test(test_base_bytes SOURCES unit/test_base_bytes.c LABELS base)
pawl_unit_test(test_base_sort SOURCES unit/test_base_sort.c LABELS base)
