pawl_unit_test(test_sha256_streams SOURCES unit/test_sha256_streams.c LIBRARIES OpenSSL::Crypto)
pawl_unit_test(test_writer_large SOURCES unit/test_writer_large.c LIBRARIES pawl_sim LABELS os)
pawl_unit_test(test_crew SOURCES unit/test_crew.c LIBRARIES pawl_sim)
pawl_unit_test(test_read_at_once SOURCES unit/test_read_at_once.c LIBRARIES pawl_sim)
