add_executable(bench_sha256 bench_sha256.c)
target_include_directories(bench_sha256 PRIVATE ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(bench_sha256 PRIVATE pawl_static)
