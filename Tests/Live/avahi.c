/* In the place of Avahi's client (tests alone): a network on which a device called "desk" is announced, whose address cannot be had the
   first times. What this side announces goes into the file that ANNOUNCED names. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef void (*changed)(void *, int, void *);
typedef void (*browsed)(void *, int, int, int, const char *, const char *, const char *, int, void *);
typedef void (*resolved)(
    void *, int, int, int, const char *, const char *, const char *, const char *, const void *, uint16_t, void *, int, void *);

static int thing, misses, asked, is_announced, waits;
static browsed browse;
static resolved resolve;
static void *browse_payload, *resolve_payload;

void *avahi_simple_poll_new(void) { return &thing; }
const void *avahi_simple_poll_get(void *poll) { return poll; }
void avahi_simple_poll_wakeup(void *poll) { (void)poll; }
void avahi_simple_poll_free(void *poll) { (void)poll; }
char *avahi_alternative_service_name(const char *name) { return strdup(name); }
void avahi_free(void *memory) { free(memory); }
const char *avahi_strerror(int error) { (void)error; return "error"; }
char *avahi_address_snprint(char *text, size_t size, const void *address) {
    snprintf(text, size, "%s", (const char *)address);
    return text;
}
void *avahi_client_new(const void *poll, int flags, changed told, void *payload, int *error) {
    (void)poll, (void)flags, (void)error;
    told(&thing, 2, payload);
    return &thing;
}
void avahi_client_free(void *client) { (void)client; }
void *avahi_entry_group_new(void *client, changed told, void *payload) {
    (void)client, (void)told, (void)payload;
    return &thing;
}
int avahi_entry_group_reset(void *group) { (void)group; return 0; }
int avahi_entry_group_commit(void *group) { (void)group; return 0; }
int avahi_entry_group_add_service_strlst(void *group, int interface, int protocol, int flags, const char *name, const char *kind,
    const char *domain, const char *host, uint16_t port, void *texts) {
    (void)group, (void)interface, (void)protocol, (void)flags, (void)kind, (void)domain, (void)host, (void)texts;
    FILE *file = fopen(getenv("ANNOUNCED"), "w");
    if (file) fprintf(file, "%s %d", name, port), fclose(file);
    return 0;
}
void *avahi_service_browser_new(
    void *client, int interface, int protocol, const char *kind, const char *domain, int flags, browsed told, void *payload) {
    (void)client, (void)interface, (void)protocol, (void)kind, (void)domain, (void)flags;
    browse = told, browse_payload = payload;
    misses = atoi(getenv("MISSES"));
    return &thing;
}
void *avahi_service_resolver_new(void *client, int interface, int protocol, const char *name, const char *kind, const char *domain,
    int wanted, int flags, resolved told, void *payload) {
    (void)client, (void)interface, (void)protocol, (void)name, (void)kind, (void)domain, (void)wanted, (void)flags;
    asked++;
    if (asked == 1 && misses > 0) return NULL;
    resolve = told, resolve_payload = payload, waits = 1;
    return &thing;
}
int avahi_service_resolver_free(void *resolver) { (void)resolver; return 0; }
int avahi_simple_poll_iterate(void *poll, int milliseconds) {
    (void)poll, (void)milliseconds;
    usleep(20000);
    if (!is_announced) {
        is_announced = 1;
        browse(&thing, 3, 0, 0, "desk", "_llvs._tcp", "local", 0, browse_payload);
    }
    if (waits) {
        waits = 0;
        int fails = asked <= misses;
        resolve(&thing, 3, 0, fails, "desk", "_llvs._tcp", "local", fails ? NULL : "desk.local", fails ? NULL : "::1",
            (uint16_t)atoi(getenv("PORT")), NULL, 0, resolve_payload);
    }
    return 0;
}
