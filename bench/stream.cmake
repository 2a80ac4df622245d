add_executable(bench_stream bench_stream.c)
target_include_directories(bench_stream PRIVATE ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(bench_stream PRIVATE pawl_static)
