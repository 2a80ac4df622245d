add_executable(bench_small bench_small.c ${PROJECT_SOURCE_DIR}/cli/limits.c)
target_include_directories(bench_small PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(bench_small PRIVATE pawl_static Threads::Threads)
