// The counts of `meter.c`.

enum meter_kind { METER_LOG, METER_PAGE, METER_OTHER, METER_KINDS };

// What was written of a kind.
struct meter_counts {
    unsigned long long calls;
    // Bytes of blocks of 4 KiB, before and after compression.
    unsigned long long logical, physical;
};

// What was counted.
struct meter_result {
    struct meter_counts written[METER_KINDS];
    // Calls that read at an offset, and the bytes of the blocks that they touch.
    unsigned long long read_calls, read_bytes;
    unsigned long long syncs;
};

// How long a sync takes. No sync reaches the device: what is measured is what is written, and no power fails.
void meter_sync_time(unsigned microseconds);
// Begins to count, from zero.
void meter_begin(void);
// Ends counting, with all that was written so far.
struct meter_result meter_end(void);
// Bytes of a file's blocks after compression; blocks of zeros take none.
unsigned long long meter_stored(const char *path);
