add_executable(bench_convert bench_convert.c)
target_include_directories(bench_convert PRIVATE ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(bench_convert PRIVATE pawl_static)
