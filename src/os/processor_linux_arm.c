/* What Linux tells about an ARMv8 processor. */
#include "os/processor.h"

#include <asm/hwcap.h>
#include <sys/auxv.h>

bool
pawl_processor_has_arm_sha2(void)
{
    return (getauxval(AT_HWCAP) & HWCAP_SHA2) != 0;
}
