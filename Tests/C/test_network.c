/* Exchanges over a network as far as they need no server: refusals, requests for credentials, and secrets that no message may contain.
   Tests/Network has the rest. */
#include "support.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

/* Returns the URL of a port without a listener, and the socket that reserves it. */
static int closed_port(char *url, size_t size) {
    struct sockaddr_in address = {0};
    socklen_t length = sizeof address;
    int held = socket(AF_INET, SOCK_STREAM, 0);
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_true(held >= 0);
    assert_int_equal(bind(held, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(getsockname(held, (struct sockaddr *)&address, &length), 0);
    snprintf(url, size, "http+webdav://127.0.0.1:%d/notes/", (int)ntohs(address.sin_port));
    return held;
}

/* Records how a callback for credentials was called, and decides its answer. */
typedef struct asked { int count, freed; llvs_bool again; char place[200]; int fails; } asked;
static llvs_status ask(void *payload, const llvs_bytes *place, llvs_bool again, llvs_reply *reply, llvs_error **out) {
    asked *a = payload;
    a->count++;
    a->again = again;
    snprintf(a->place, sizeof a->place, "%.*s", (int)place->size, (const char *)place->data);
    if (a->fails) {
        *out = llvs_error_create(77, llvs_str("the key store is locked"));
        return LLVS_ERROR_USER;
    }
    if (llvs_reply_set(reply, 0, llvs_str("ann"), NULL) != LLVS_OK) return LLVS_ERROR_USER;
    return llvs_reply_set(reply, 1, llvs_str("s3cret"), NULL);
}
static void freed(void *payload) { ((asked *)payload)->freed++; }

static void urls_that_are_refused(void **state) {
    static const char *const urls[] = {
        "https+webdav://ann:s3cret@example.org/",
        "https+webdav://ann@example.org/",
        "https+webdav:example.org",
        "https+webdav://",
        "https+webdav:///x",
        "https+webdav://example.org:0/",
        "https+webdav://example.org:99999/",
        "https+webdav://example.org:x/",
        "https+webdav://exa mple.org/",
        "https+webdav://example.org/?key=s3cret",
        "https+webdav://[::1/",
        "https+webdav://example.org/\r\nX: y",
        "http+webdav://example.org/",
        "http+webdav://127.0.0.1.example.org/",
        "http+webdav://10.0.0.1/",
        "https+webdav://h\303\251.org/",
        "sftp://ann:s3cret@example.org/",
        "sftp://example.org/?key=s3cret",
        "sftp://example.org/a%0Arm%20b",
        "sftp://example.org/a%00",
        "sftp:///a",
    };
    llvs_store *store = memory_store();
    llvs_exchange *exchange;
    llvs_error *error = NULL;
    size_t i;
    (void)state;
    for (i = 0; i < sizeof urls / sizeof *urls; i++) {
        assert_int_equal(llvs_exchange_open(store, llvs_str(urls[i]), NULL, &exchange, &error), LLVS_ERROR_INVALID_ARGUMENT);
        assert_null(strstr(llvs_error_message(error), "s3cret"));
        llvs_error_free(error);
        error = NULL;
    }
    FAILS(LLVS_ERROR_UNSUPPORTED, llvs_exchange_open(store, llvs_str("gopher://example.org/"), NULL, &exchange, &error));
    OK(llvs_exchange_open(store, llvs_str("HTTPS+WebDAV://example.org"), NULL, &exchange, &error));
    llvs_exchange_free(exchange);
    llvs_store_free(store);
}

static void options_that_are_refused(void **state) {
    llvs_store *store = memory_store();
    llvs_exchange *exchange;
    llvs_exchange_options options = LLVS_EXCHANGE_OPTIONS_INIT;
    asked a = {0};
    llvs_bytes url = llvs_str("https+webdav://example.org/");
    (void)state;
    options.password = llvs_str("s3cret\r\nX: y");
    FAILS_NAMING(LLVS_ERROR_INVALID_ARGUMENT, "password", llvs_exchange_open(store, url, &options, &exchange, &error));
    options.password = LLVS_NONE;
    options.user = llvs_str("ann");
    options.token = llvs_str("t");
    FAILS_NAMING(LLVS_ERROR_INVALID_ARGUMENT, "token", llvs_exchange_open(store, url, &options, &exchange, &error));
    options.token = LLVS_NONE;
    options.credentials = ask;
    options.credentials_payload = &a;
    options.credentials_free = freed;
    FAILS_NAMING(LLVS_ERROR_INVALID_ARGUMENT, "callback", llvs_exchange_open(store, url, &options, &exchange, &error));
    assert_int_equal(a.freed, 1);
    options.user = LLVS_NONE;
    options.layout = 9;
    FAILS(LLVS_ERROR_INVALID_ARGUMENT, llvs_exchange_open(store, url, &options, &exchange, &error));
    assert_int_equal(a.freed, 2);
    options.layout = LLVS_LAYOUT_AUTOMATIC;
    options.credentials = NULL;
    options.credentials_payload = NULL;
    options.credentials_free = NULL;
    /* Options that are only for SFTP, and their requirements. */
    options.known_hosts = llvs_str("/etc/ssh/ssh_known_hosts");
    FAILS_NAMING(LLVS_ERROR_INVALID_ARGUMENT, "known_hosts", llvs_exchange_open(store, url, &options, &exchange, &error));
    options.key_file = llvs_str("/k\n");
    FAILS_NAMING(LLVS_ERROR_INVALID_ARGUMENT, "key_file", llvs_exchange_open(store, url, &options, &exchange, &error));
    options.key_file = llvs_str("/k");
    FAILS_NAMING(LLVS_ERROR_INVALID_ARGUMENT, "user", llvs_exchange_open(store, llvs_str("sftp://host/"), &options, &exchange, &error));
    options.user = llvs_str("ann");
    OK(llvs_exchange_open(store, llvs_str("sftp://host/"), &options, &exchange, &error));
    llvs_exchange_free(exchange);
    /* A program that is older than these options: they are not read. */
    options.device_name = llvs_str("a\nb");
    FAILS_NAMING(LLVS_ERROR_INVALID_ARGUMENT, "name of a device",
        llvs_exchange_open(store, llvs_str("sftp://host/"), &options, &exchange, &error));
    options.struct_size = 280;
    OK(llvs_exchange_open(store, llvs_str("sftp://host/"), &options, &exchange, &error));
    llvs_exchange_free(exchange);
    options.struct_size = 248;
    OK(llvs_exchange_open(store, url, &options, &exchange, &error));
    llvs_exchange_free(exchange);
    options.struct_size = sizeof options;
    options.user = options.key_file = options.known_hosts = options.device_name = LLVS_NONE;
    options.credentials = ask;
    options.credentials_payload = &a;
    options.credentials_free = freed;
    OK(llvs_exchange_open(store, url, &options, &exchange, &error));
    llvs_exchange_free(exchange);
    assert_int_equal(a.freed, 3);
    assert_int_equal(a.count, 0);
    llvs_store_free(store);
}

static llvs_status keep_tokens(void *payload, llvs_tokens_step step, const llvs_bytes *tokens, llvs_reply *reply, llvs_error **out) {
    asked *a = payload;
    (void)tokens; (void)out;
    a->count++;
    if (step != LLVS_TOKENS_READ) return LLVS_ERROR_USER;
    return a->fails ? LLVS_PASS : llvs_reply_set(reply, 0, llvs_str("{\"access_token\": \"a\\nb\"}"), NULL);
}

static void tokens_of_the_host(void **state) {
    llvs_store *store = memory_store();
    llvs_exchange *exchange;
    llvs_exchange_options options = LLVS_EXCHANGE_OPTIONS_INIT;
    asked a = {0};
    llvs_bytes url = llvs_str("gdrive:///notes?endpoint=http://127.0.0.1:9/");
    (void)state;
    options.tokens = keep_tokens;
    options.tokens_payload = &a;
    options.tokens_free = freed;
    FAILS_NAMING(LLVS_ERROR_INVALID_ARGUMENT, "cloud drives", llvs_exchange_open(store, llvs_str("memory:x"), &options, &exchange, &error));
    options.token_file = llvs_str("/none");
    FAILS_NAMING(LLVS_ERROR_INVALID_ARGUMENT, "token_file", llvs_exchange_open(store, url, &options, &exchange, &error));
    options.token_file = LLVS_NONE;
    options.token = llvs_str("t");
    FAILS_NAMING(LLVS_ERROR_INVALID_ARGUMENT, "one of them", llvs_exchange_open(store, url, &options, &exchange, &error));
    options.token = LLVS_NONE;
    assert_int_equal(a.freed, 3);
    OK(llvs_exchange_open(store, url, &options, &exchange, &error));
    assert_int_equal(a.count, 0);
    FAILS_NAMING(LLVS_ERROR_INVALID_ARGUMENT, "control character", llvs_exchange_retrieve(exchange, NULL, NULL, &error));
    assert_int_equal(a.count, 1);
    a.fails = 1;
    FAILS_NAMING(LLVS_ERROR_USER, "LLVS_TOKENS_LOCK", llvs_exchange_retrieve(exchange, NULL, NULL, &error));
    llvs_exchange_free(exchange);
    assert_int_equal(a.freed, 4);
    llvs_store_free(store);
}

static void a_place_that_cannot_be_reached(void **state) {
    llvs_store *store = memory_store();
    llvs_exchange *exchange;
    llvs_exchange_options options = LLVS_EXCHANGE_OPTIONS_INIT;
    char url[100];
    asked a = {0};
    llvs_error *error = NULL;
    int held = closed_port(url, sizeof url);
    (void)state;
    options.credentials = ask;
    options.credentials_payload = &a;
    options.credentials_free = freed;
    OK(llvs_exchange_open(store, llvs_str(url), &options, &exchange, &error));
    assert_int_equal(a.count, 0);
    FAILS_NAMING(LLVS_ERROR_TRANSPORT, "127.0.0.1", llvs_exchange_retrieve(exchange, NULL, NULL, &error));
    /* Called once, with the address without the scheme of exchanges. */
    assert_int_equal(a.count, 1);
    assert_false(a.again);
    assert_string_equal(a.place + 7, url + strlen("http+webdav://"));
    FAILS(LLVS_ERROR_TRANSPORT, llvs_exchange_send(exchange, NULL, NULL, &error));
    assert_int_equal(a.count, 1);
    llvs_exchange_free(exchange);
    assert_int_equal(a.freed, 1);
    a.fails = 1;
    OK(llvs_exchange_open(store, llvs_str(url), &options, &exchange, &error));
    assert_int_equal(llvs_exchange_retrieve(exchange, NULL, NULL, &error), LLVS_ERROR_USER);
    assert_int_equal(llvs_error_user_code(error), 77);
    llvs_error_free(error);
    error = NULL;
    llvs_exchange_free(exchange);
    llvs_store_free(store);
    close(held);
}

static void a_call_that_is_cancelled(void **state) {
    llvs_store *store = memory_store();
    llvs_exchange *exchange;
    llvs_cancel_token *token;
    llvs_control control = LLVS_CONTROL_INIT;
    char url[100];
    int held = closed_port(url, sizeof url);
    (void)state;
    OK(llvs_cancel_token_create(&token, &error));
    llvs_cancel_token_cancel(token);
    control.token = token;
    OK(llvs_exchange_open(store, llvs_str(url), NULL, &exchange, &error));
    FAILS(LLVS_ERROR_CANCELLED, llvs_exchange_retrieve(exchange, &control, NULL, &error));
    FAILS(LLVS_ERROR_CANCELLED, llvs_exchange_send(exchange, &control, NULL, &error));
    llvs_exchange_free(exchange);
    llvs_cancel_token_free(token);
    llvs_store_free(store);
    close(held);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(urls_that_are_refused),
        cmocka_unit_test(options_that_are_refused),
        cmocka_unit_test(tokens_of_the_host),
        cmocka_unit_test(a_place_that_cannot_be_reached),
        cmocka_unit_test(a_call_that_is_cancelled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
