add_executable(bench_st_open bench_st_open.c)
target_include_directories(bench_st_open PRIVATE ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(bench_st_open PRIVATE pawl_static)
