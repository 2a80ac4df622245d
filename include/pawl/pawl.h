/* pawl/pawl.h: everything. */
#ifndef PAWL_PAWL_H
#define PAWL_PAWL_H

#include "pawl/ckpt.h"
#include "pawl/convert.h"
#include "pawl/digest.h"
#include "pawl/dtype.h"
#include "pawl/json.h"
#include "pawl/llmcp35.h"
#include "pawl/model.h"
#include "pawl/pcg32.h"
#include "pawl/report.h"
#include "pawl/run.h"
#include "pawl/state.h"
#include "pawl/status.h"
#include "pawl/stream.h"
#include "pawl/tensor.h"
#include "pawl/tokens.h"
#include "pawl/version.h"

#endif
