add_executable(bench_counts bench_counts.c)
target_include_directories(bench_counts PRIVATE ${PROJECT_SOURCE_DIR})
target_link_libraries(bench_counts PRIVATE pawl_trainer)
