// A store as `src/engines/linked.rs` uses it. Each library implements this once. A failure prints a message and ends the
// program. One thread writes; each reader belongs to one thread.

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

// Sees an entry. Returns whether to go on.
typedef int (*visit)(void *context, const unsigned char *key, size_t key_size, const unsigned char *value,
                     size_t value_size);

// Opens the store of a folder, or creates it there. If `direct` is 1, pages bypass the file cache of the system.
void *store_open(const char *folder, uint64_t cache, int direct);
void store_close(void *store);
void store_begin(void *store);
void store_put(void *store, const unsigned char *key, size_t key_size, const unsigned char *value, size_t value_size);
void store_remove(void *store, const unsigned char *key, size_t key_size);
// Commits what was put since `store_begin`; synced or not.
void store_commit(void *store, int synced);
// Makes the store as small as it can be.
void store_compact(void *store);
// A view of the present.
void *reader_open(void *store);
void reader_close(void *reader);
// Returns whether the key is there.
int reader_get(void *reader, const unsigned char *key, size_t key_size, visit see, void *context);
// Visits the entries from a key on.
void reader_scan(void *reader, const unsigned char *from, size_t from_size, visit see, void *context);

static void fail(const char *what, const char *why) {
    fprintf(stderr, "%s: %s\n", what, why);
    exit(2);
}
