// A store as `workload.c` uses it. Each peer implements this once. A failure prints a message and ends the program.

#include <stddef.h>
#include <stdint.h>

struct settings {
    const char *folder;
    uint64_t records;
    size_t record_size, page_size, cache;
    unsigned threads;
    // Each commit is flushed; otherwise the log is flushed when `store_flush_log` is called.
    int flush_each;
    // The bytes of the data set that this one is a small one of.
    uint64_t stands_for;
};

#define KEY_BYTES 8
// Threads of the store that write in the background, as in the B-minus-tree paper.
#define BACKGROUND_WRITERS 4

void store_open(const struct settings *settings);
// A session of one thread.
void *session_open(void);
void session_close(void *session);
void session_put(void *session, const unsigned char *key, const unsigned char *value, size_t value_size);
// Returns whether the key is there.
int session_get(void *session, const unsigned char *key);
// Reads as many entries from the key on; returns how many there are.
size_t session_scan(void *session, const unsigned char *key, size_t most);
void store_flush_log(void);
// Writes all that is only in memory, as a checkpoint does, and waits for what the store does in the background.
void store_checkpoint(void);
void store_close(void);
// Its name and version.
const char *store_name(void);

void fail(const char *what, const char *why) __attribute__((noreturn));
