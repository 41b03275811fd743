/* The names of Unicode's characters, half a megabyte of the Swift runtime, stay out of the shipped library: nothing here uses them. The
   library is linked so that the runtime's call comes here (cmake/Library.cmake: --wrap), and the linker drops the table that nothing
   refers to. 0 is the runtime's answer for a character without a name. In other builds this is not called. */
#include "CLLVSShims.h"
#include <stddef.h>

ptrdiff_t __wrap__swift_stdlib_getScalarName(uint32_t scalar, uint8_t *buffer, ptrdiff_t capacity);
ptrdiff_t __wrap__swift_stdlib_getScalarName(uint32_t scalar, uint8_t *buffer, ptrdiff_t capacity) {
    (void)scalar;
    (void)buffer;
    (void)capacity;
    return 0;
}
