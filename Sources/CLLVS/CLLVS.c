/* Compiles the public headers once as C, so that a mistake in them stops the build. */
#include "llvs.h"
#include "llvs_testing.h"
