#ifndef LLVS_H
#define LLVS_H
#include <stdint.h>
#include <stddef.h>
#endif
