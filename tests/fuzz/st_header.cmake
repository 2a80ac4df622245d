pawl_fuzz_target(st_header SOURCES fuzz/fuzz_st_header.c)
