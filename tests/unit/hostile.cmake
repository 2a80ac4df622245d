pawl_unit_test(test_hostile_input SOURCES unit/test_hostile_input.c TIMEOUT 60 LABELS hostile)
