// WiredTiger for `workload.c`: a B-tree without compression, with a log.

#include "store.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wiredtiger.h>

static WT_CONNECTION *connection;
static WT_SESSION *own;
static size_t value_bytes;

struct client {
    WT_SESSION *session;
    WT_CURSOR *cursor;
};

static void check(int code, const char *what) {
    if (code) fail(what, wiredtiger_strerror(code));
}

void store_open(const struct settings *settings) {
    char config[512];
    snprintf(config, sizeof config,
             "create,cache_size=%zu,session_max=64,eviction=(threads_min=%d,threads_max=%d),"
             "log=(enabled=true,file_max=64MB,prealloc=false),checkpoint=(log_size=64MB),"
             "transaction_sync=(enabled=%s,method=fsync)",
             settings->cache, BACKGROUND_WRITERS, BACKGROUND_WRITERS, settings->flush_each ? "true" : "false");
    check(wiredtiger_open(settings->folder, NULL, config, &connection), "WiredTiger cannot open its folder");
    check(connection->open_session(connection, NULL, NULL, &own), "WiredTiger cannot open a session");
    snprintf(config, sizeof config,
             "key_format=u,value_format=u,allocation_size=4KB,internal_page_max=%zu,leaf_page_max=%zu",
             settings->page_size, settings->page_size);
    check(own->create(own, "table:records", config), "WiredTiger cannot create a table");
    value_bytes = settings->record_size - KEY_BYTES;
}

void *session_open(void) {
    struct client *client = malloc(sizeof *client);
    if (!client) fail("no memory", "for a session");
    check(connection->open_session(connection, NULL, NULL, &client->session), "WiredTiger cannot open a session");
    check(client->session->open_cursor(client->session, "table:records", NULL, "overwrite=true", &client->cursor),
          "WiredTiger cannot open a cursor");
    return client;
}

void session_close(void *session) {
    struct client *client = session;
    check(client->session->close(client->session, NULL), "WiredTiger cannot close a session");
    free(client);
}

static void set_key(WT_CURSOR *cursor, const unsigned char *key) {
    WT_ITEM item = {.data = key, .size = KEY_BYTES};
    cursor->set_key(cursor, &item);
}

void session_put(void *session, const unsigned char *key, const unsigned char *value, size_t value_size) {
    WT_CURSOR *cursor = ((struct client *)session)->cursor;
    WT_ITEM item = {.data = value, .size = value_size};
    int code;
    do {
        set_key(cursor, key);
        cursor->set_value(cursor, &item);
        code = cursor->insert(cursor);
    } while (code == WT_ROLLBACK);
    check(code, "WiredTiger cannot put");
    cursor->reset(cursor);
}

int session_get(void *session, const unsigned char *key) {
    WT_CURSOR *cursor = ((struct client *)session)->cursor;
    WT_ITEM item;
    set_key(cursor, key);
    int code = cursor->search(cursor);
    if (!code) check(cursor->get_value(cursor, &item), "WiredTiger cannot get");
    int there = !code && item.size == value_bytes;
    cursor->reset(cursor);
    return there;
}

size_t session_scan(void *session, const unsigned char *key, size_t most) {
    WT_CURSOR *cursor = ((struct client *)session)->cursor;
    set_key(cursor, key);
    size_t found = 0;
    for (int code = cursor->search(cursor); !code && found < most; found++) {
        WT_ITEM item;
        check(cursor->get_value(cursor, &item), "WiredTiger cannot scan");
        code = cursor->next(cursor);
    }
    cursor->reset(cursor);
    return found;
}

void store_flush_log(void) { check(own->log_flush(own, "sync=on"), "WiredTiger cannot flush its log"); }

void store_checkpoint(void) { check(own->checkpoint(own, NULL), "WiredTiger cannot take a checkpoint"); }

void store_close(void) { check(connection->close(connection, NULL), "WiredTiger cannot close"); }

const char *store_name(void) { return "wiredtiger"; }
