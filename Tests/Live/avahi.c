/* In the place of Avahi's client (tests alone): a network on which a device called "desk" is announced, whose address cannot be had the
   first times. What this side announces goes into the file that ANNOUNCED names. What the daemon does wrong before is the word in BAD. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef void (*changed)(void *, int, void *);
typedef void (*browsed)(void *, int, int, int, const char *, const char *, const char *, int, void *);
typedef void (*resolved)(
    void *, int, int, int, const char *, const char *, const char *, const char *, const void *, uint16_t, void *, int, void *);

/* Moves the clock of who waits, by the seconds that pass in each turn. */
static void (*pass)(double);
static int turns, asked_at[16];
void pass_time_by(void (*function)(double)) { pass = function; }
int turns_made(void) { return turns; }
/* Returns the turn in which the address was requested for the n-th time. */
int turn_of_question(int number) { return number < 16 ? asked_at[number] : 0; }

static int thing, misses, asked, is_announced, waits, turn, browsers;
static changed group_changed;
static void *group_payload;
static int is(const char *bad) {
    const char *given = getenv("BAD");
    return given && strcmp(given, bad) == 0;
}
static browsed browse;
static resolved resolve;
static void *browse_payload, *resolve_payload;

void *avahi_simple_poll_new(void) { return is("no memory") ? NULL : &thing; }
const void *avahi_simple_poll_get(void *poll) { return poll; }
void avahi_simple_poll_wakeup(void *poll) { (void)poll; }
void avahi_simple_poll_free(void *poll) { (void)poll; }
char *avahi_alternative_service_name(const char *name) { return is("no other name") ? NULL : strdup(name); }
void avahi_free(void *memory) { free(memory); }
const char *avahi_strerror(int error) { (void)error; return "error"; }
char *avahi_address_snprint(char *text, size_t size, const void *address) {
    snprintf(text, size, "%s", (const char *)address);
    return text;
}
void *avahi_client_new(const void *poll, int flags, changed told, void *payload, int *error) {
    (void)poll, (void)flags;
    *error = -5;
    if (is("no client")) return NULL;
    told(&thing, 2, payload);
    return &thing;
}
void avahi_client_free(void *client) { (void)client; }
void *avahi_entry_group_new(void *client, changed told, void *payload) {
    (void)client;
    group_changed = told, group_payload = payload;
    return is("no group") ? NULL : &thing;
}
int avahi_entry_group_reset(void *group) { (void)group; return 0; }
int avahi_entry_group_commit(void *group) { (void)group; return 0; }
int avahi_entry_group_add_service_strlst(void *group, int interface, int protocol, int flags, const char *name, const char *kind,
    const char *domain, const char *host, uint16_t port, void *texts) {
    (void)group, (void)interface, (void)protocol, (void)flags, (void)kind, (void)domain, (void)host, (void)texts;
    if (is("names that are taken") || is("no other name")) return -8;
    FILE *file = fopen(getenv("ANNOUNCED"), "w");
    if (file) fprintf(file, "%s %d", name, port), fclose(file);
    return 0;
}
void *avahi_service_browser_new(
    void *client, int interface, int protocol, const char *kind, const char *domain, int flags, browsed told, void *payload) {
    (void)client, (void)interface, (void)protocol, (void)kind, (void)domain, (void)flags;
    if (++browsers == 1 && is("no browser")) return NULL;
    browse = told, browse_payload = payload, is_announced = 0;
    misses = atoi(getenv("MISSES"));
    return &thing;
}
void *avahi_service_resolver_new(void *client, int interface, int protocol, const char *name, const char *kind, const char *domain,
    int wanted, int flags, resolved told, void *payload) {
    (void)client, (void)interface, (void)protocol, (void)name, (void)kind, (void)domain, (void)wanted, (void)flags;
    if (asked < 16 && strcmp(name, "desk") == 0) asked_at[asked] = turns;
    asked++;
    if (strcmp(name, "desk") != 0) {
        told(&thing, 3, 0, 0, name, kind, domain, "other.local", "::1", 1, NULL, 0, payload);
        return &thing;
    }
    if (asked == 1 && misses > 0) return NULL;
    resolve = told, resolve_payload = payload, waits = 1;
    return &thing;
}
int avahi_service_resolver_free(void *resolver) { (void)resolver; return 0; }
int avahi_simple_poll_iterate(void *poll, int milliseconds) {
    (void)poll, (void)milliseconds;
    usleep(1000);
    __atomic_add_fetch(&turns, 1, __ATOMIC_SEQ_CST);
    if (pass) pass(0.1);
    if (is("a browser that fails") && !turn++) browse(&thing, 3, 0, 4, NULL, NULL, NULL, 0, browse_payload);
    if (is("a connection that fails") && browsers < 2) return -1;
    if (is("a name that another has") && !turn++) group_changed(&thing, 3, group_payload);
    if (!is_announced) {
        is_announced = 1;
        if (is("no names")) browse(&thing, 3, 0, 0, NULL, NULL, NULL, 0, browse_payload);
        if (is("no kinds")) browse(&thing, 3, 0, 0, "other", NULL, NULL, 0, browse_payload);
        if (is("our own")) browse(&thing, 3, 0, 0, "other", "_llvs._tcp", "local", 16, browse_payload);
        if (is("what was never there")) browse(&thing, 3, 0, 1, "other", "_llvs._tcp", "local", 0, browse_payload);
        browse(&thing, 3, 0, 0, "desk", "_llvs._tcp", "local", 0, browse_payload);
    }
    if (waits) {
        waits = 0;
        char name[16];
        for (int number = 0; is("a crowd") && number < 1500; number++) {
            snprintf(name, sizeof name, "other%d", number);
            browse(&thing, 3, 0, 0, name, "_llvs._tcp", "local", 0, browse_payload);
        }
        for (int times = 0; is("the same again") && times < 3; times++)
            resolve(&thing, 3, 0, 0, "desk", "_llvs._tcp", "local", "desk.local", "::1", 1, NULL, 0, resolve_payload);
        if (is("no names")) resolve(&thing, 3, 0, 0, NULL, NULL, NULL, NULL, "::1", 1, NULL, 0, resolve_payload);
        if (is("no address") && !turn++) {
            resolve(&thing, 3, 0, 0, "desk", "_llvs._tcp", "local", NULL, NULL, 1, NULL, 0, resolve_payload);
            return 0;
        }
        int fails = asked <= misses;
        resolve(&thing, 3, 0, fails, "desk", "_llvs._tcp", "local", fails ? NULL : "desk.local", fails ? NULL : "::1",
            (uint16_t)atoi(getenv("PORT")), NULL, 0, resolve_payload);
    }
    return 0;
}
