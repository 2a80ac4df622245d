pawl_unit_test(test_sha256_streams SOURCES unit/test_sha256_streams.c LIBRARIES OpenSSL::Crypto)
