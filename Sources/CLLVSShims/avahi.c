#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "CLLVSShims.h"
#include <stddef.h>

#define FUNCTION(name) {"avahi_" #name, offsetof(llvs_shim_avahi, name)}
/* The functions of libavahi-common are found through libavahi-client, which is linked to it. */
static const llvs_shim_function names[] = {
    FUNCTION(simple_poll_new), FUNCTION(simple_poll_get), FUNCTION(simple_poll_iterate), FUNCTION(simple_poll_wakeup),
    FUNCTION(simple_poll_free), FUNCTION(alternative_service_name), FUNCTION(free), FUNCTION(strerror), FUNCTION(address_snprint),
    FUNCTION(client_new), FUNCTION(client_free), FUNCTION(entry_group_new), FUNCTION(entry_group_reset), FUNCTION(entry_group_commit),
    FUNCTION(entry_group_add_service_strlst), FUNCTION(service_browser_new), FUNCTION(service_resolver_new),
    FUNCTION(service_resolver_free),
};

const llvs_shim_avahi *llvs_shim_avahi_open(const char *file, char *problem, size_t size) {
    static llvs_shim_avahi functions;
    static llvs_shim_library library = {names, sizeof names / sizeof names[0], &functions, NULL, 0};
    return llvs_shim_open_library(&library, file, problem, size) ? &functions : NULL;
}
