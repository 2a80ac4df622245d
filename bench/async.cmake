add_executable(bench_async bench_async.c)
target_link_libraries(bench_async PRIVATE pawl Threads::Threads)
