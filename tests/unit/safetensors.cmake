pawl_unit_test(test_st_files SOURCES unit/test_st_files.c)
pawl_unit_test(test_st_parse SOURCES unit/test_st_parse.c)
pawl_unit_test(test_st_plan SOURCES unit/test_st_plan.c)
