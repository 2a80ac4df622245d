foreach(test os_posix file dir writer publish simdisk)
    pawl_unit_test(test_${test} SOURCES unit/test_${test}.c LIBRARIES pawl_sim LABELS os)
endforeach()
