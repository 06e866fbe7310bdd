// WiredTiger, with its defaults, a log, and a checkpoint whenever the log has grown by 64 MiB. Its documentation recommends
// more than one thread of eviction, and a cursor that each thread uses again and again. WiredTiger can give up a transaction
// that finds no room in the cache, so the changes are kept until the commit and made again if need be.

#include "store.h"
#include <string.h>
#include <wiredtiger.h>

// A change of a transaction. The key and the value follow it. A key without a value is removed.
struct change {
    size_t key_size, value_size;
    int has_value;
};

struct store {
    WT_CONNECTION *connection;
    WT_SESSION *session;
    WT_CURSOR *cursor;
    unsigned char *changes;
    size_t used, room;
};

struct reader {
    WT_SESSION *session;
    WT_CURSOR *cursor;
};

static void check(int code, const char *what) {
    if (code) fail(what, wiredtiger_strerror(code));
}

static void set(WT_CURSOR *cursor, const unsigned char *key, size_t size) {
    WT_ITEM item = {.data = key, .size = size};
    cursor->set_key(cursor, &item);
}

void *store_open(const char *folder, uint64_t cache, int direct) {
    struct store *store = calloc(1, sizeof *store);
    if (!store) fail("no memory", "for a store");
    char config[512];
    snprintf(config, sizeof config,
             "create,cache_size=%llu,session_max=128,eviction=(threads_min=1,threads_max=4),"
             "log=(enabled=true),checkpoint=(log_size=64MB),transaction_sync=(enabled=false,method=fsync),"
             "direct_io=[%s]",
             (unsigned long long)cache, direct ? "data" : "");
    check(wiredtiger_open(folder, NULL, config, &store->connection), "WiredTiger cannot open its folder");
    check(store->connection->open_session(store->connection, NULL, NULL, &store->session),
          "WiredTiger cannot open a session");
    check(store->session->create(store->session, "table:records", "key_format=u,value_format=u"),
          "WiredTiger cannot create a table");
    check(store->session->open_cursor(store->session, "table:records", NULL, "overwrite=true", &store->cursor),
          "WiredTiger cannot open a cursor");
    return store;
}

void store_close(void *opaque) {
    struct store *store = opaque;
    check(store->connection->close(store->connection, NULL), "WiredTiger cannot close");
    free(store->changes);
    free(store);
}

void store_begin(void *opaque) { ((struct store *)opaque)->used = 0; }

static void keep(struct store *store, struct change change, const unsigned char *key, const unsigned char *value) {
    size_t size = sizeof change + change.key_size + change.value_size;
    if (store->room - store->used < size) {
        store->room = 2 * (store->room + size);
        store->changes = realloc(store->changes, store->room);
        if (!store->changes) fail("no memory", "for a transaction");
    }
    unsigned char *at = store->changes + store->used;
    memcpy(at, &change, sizeof change);
    memcpy(at + sizeof change, key, change.key_size);
    if (change.has_value) memcpy(at + sizeof change + change.key_size, value, change.value_size);
    store->used += size;
}

void store_put(void *opaque, const unsigned char *key, size_t key_size, const unsigned char *value, size_t value_size) {
    struct change change = {.key_size = key_size, .value_size = value_size, .has_value = 1};
    keep(opaque, change, key, value);
}

void store_remove(void *opaque, const unsigned char *key, size_t key_size) {
    struct change change = {.key_size = key_size};
    keep(opaque, change, key, NULL);
}

// Makes all changes. Returns 0, or WT_ROLLBACK.
static int make_changes(struct store *store) {
    WT_CURSOR *cursor = store->cursor;
    int code = 0;
    for (size_t at = 0; !code && at < store->used;) {
        struct change change;
        memcpy(&change, store->changes + at, sizeof change);
        const unsigned char *key = store->changes + at + sizeof change;
        set(cursor, key, change.key_size);
        if (change.has_value) {
            WT_ITEM item = {.data = key + change.key_size, .size = change.value_size};
            cursor->set_value(cursor, &item);
            code = cursor->insert(cursor);
        } else {
            code = cursor->remove(cursor);
        }
        cursor->reset(cursor);
        at += sizeof change + change.key_size + change.value_size;
    }
    if (code && code != WT_ROLLBACK) check(code, "WiredTiger cannot change a record");
    return code;
}

void store_commit(void *opaque, int synced) {
    struct store *store = opaque;
    WT_SESSION *session = store->session;
    for (;;) {
        check(session->begin_transaction(session, NULL), "WiredTiger cannot begin");
        if (!make_changes(store)) break;
        check(session->rollback_transaction(session, NULL), "WiredTiger cannot roll back");
    }
    check(session->commit_transaction(session, synced ? "sync=on" : NULL), "WiredTiger cannot commit");
}

void store_compact(void *opaque) {
    WT_SESSION *session = ((struct store *)opaque)->session;
    check(session->checkpoint(session, NULL), "WiredTiger cannot take a checkpoint");
    check(session->compact(session, "table:records", NULL), "WiredTiger cannot compact");
}

void *reader_open(void *opaque) {
    WT_CONNECTION *connection = ((struct store *)opaque)->connection;
    struct reader *reader = calloc(1, sizeof *reader);
    if (!reader) fail("no memory", "for a reader");
    check(connection->open_session(connection, NULL, NULL, &reader->session), "WiredTiger cannot open a session");
    check(reader->session->open_cursor(reader->session, "table:records", NULL, NULL, &reader->cursor),
          "WiredTiger cannot open a cursor");
    check(reader->session->begin_transaction(reader->session, "isolation=snapshot"), "WiredTiger cannot begin");
    return reader;
}

void reader_close(void *opaque) {
    struct reader *reader = opaque;
    check(reader->session->close(reader->session, NULL), "WiredTiger cannot close a session");
    free(reader);
}

int reader_get(void *opaque, const unsigned char *key, size_t key_size, visit see, void *context) {
    WT_CURSOR *cursor = ((struct reader *)opaque)->cursor;
    WT_ITEM value;
    set(cursor, key, key_size);
    int code = cursor->search(cursor);
    if (code == WT_NOTFOUND) return 0;
    check(code, "WiredTiger cannot read");
    check(cursor->get_value(cursor, &value), "WiredTiger cannot read a value");
    see(context, key, key_size, value.data, value.size);
    cursor->reset(cursor);
    return 1;
}

void reader_scan(void *opaque, const unsigned char *from, size_t from_size, visit see, void *context) {
    WT_CURSOR *cursor = ((struct reader *)opaque)->cursor;
    int code, where = 0;
    if (from_size) {
        set(cursor, from, from_size);
        code = cursor->search_near(cursor, &where);
        if (!code && where < 0) code = cursor->next(cursor);
    } else {
        code = cursor->next(cursor);
    }
    for (int goes_on = 1; !code && goes_on; code = goes_on ? cursor->next(cursor) : 0) {
        WT_ITEM key, value;
        check(cursor->get_key(cursor, &key), "WiredTiger cannot read a key");
        check(cursor->get_value(cursor, &value), "WiredTiger cannot read a value");
        goes_on = see(context, key.data, key.size, value.data, value.size);
    }
    if (code != WT_NOTFOUND) check(code, "WiredTiger cannot scan");
    cursor->reset(cursor);
}
