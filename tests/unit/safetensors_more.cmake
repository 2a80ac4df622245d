pawl_unit_test(test_cast SOURCES unit/test_cast.c)
pawl_unit_test(test_slice SOURCES unit/test_slice.c)
pawl_unit_test(test_stored SOURCES unit/test_stored.c)
pawl_unit_test(test_sink SOURCES unit/test_sink.c)
pawl_unit_test(test_hostile SOURCES unit/test_hostile.c)
# Limits of address space and a sanitizer's own do not go together.
pawl_unit_test(test_hostile_large SOURCES unit/test_hostile_large.c LABELS long no-sanitizer TIMEOUT 300)
pawl_unit_test(test_field_cases SOURCES unit/test_field_cases.c)
