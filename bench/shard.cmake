add_executable(bench_shard bench_shard.c)
target_link_libraries(bench_shard PRIVATE pawl Threads::Threads)
