add_executable(bench_lazy bench_lazy.c)
target_link_libraries(bench_lazy PRIVATE pawl)
add_executable(bench_sums bench_sums.c)
target_link_libraries(bench_sums PRIVATE pawl)
