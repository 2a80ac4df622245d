pawl_unit_test(test_save SOURCES unit/test_save.c LIBRARIES pawl_sim)
pawl_unit_test(test_save_faults SOURCES unit/test_save_faults.c LIBRARIES pawl_sim)
pawl_unit_test(test_save_power SOURCES unit/test_save_power.c LIBRARIES pawl_sim)
pawl_unit_test(test_run SOURCES unit/test_run.c LIBRARIES pawl_sim)
