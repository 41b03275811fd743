/* Compiles the public header once as C, so that a mistake in it stops the build. */
#include "llvs.h"
