/* codec/sha256_state.h: what a running hash is made of, for the files that compute it. */
#ifndef PAWL_CODEC_SHA256_STATE_H
#define PAWL_CODEC_SHA256_STATE_H

#define OPENSSL_SUPPRESS_DEPRECATED /* why these functions: sha256.c */
#include <openssl/sha.h>

#include "pawl/digest.h"

struct pawl_sha256 {
    SHA256_CTX context;
};

#endif
