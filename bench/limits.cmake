add_executable(bench_limits bench_limits.c ${PROJECT_SOURCE_DIR}/cli/limits.c)
target_include_directories(bench_limits PRIVATE ${PROJECT_SOURCE_DIR})
target_link_libraries(bench_limits PRIVATE pawl Threads::Threads)
