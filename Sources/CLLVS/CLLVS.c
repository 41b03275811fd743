/* Compiles the public headers once as C, so that an error in them fails the build. */
#include "llvs.h"
#include "llvs_testing.h"
