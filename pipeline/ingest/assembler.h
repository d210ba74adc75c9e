/* The assembler: from messages with blocks of A-lines to whole B-scans in the raw ring.
 *
 * Lines are placed by their number, wherever blocks begin and end: sent line i of a B-scan becomes
 * A-line i, or where the scanner flies back, lags or comes from the other side, as scan.h says;
 * lines that belong to none are counted and left out. A B-scan is delivered when its last line is
 * there; or, with the rest missing, when a line of a later B-scan comes, the acquisition ends or
 * starts anew, or oct_assembler_flush is called. Then it is closed: lines that arrive for it later
 * are late and only counted. B-scans without a single line are not delivered; their lines are
 * counted as missing.
 *
 * Which sender is heard. An acquisition belongs to one epoch; a message of another epoch (another
 * sender)
 *   1. begins the next acquisition at once if it can only be a beginning (the flag "starts", or
 *      sequence 0), or if none runs: there was none, or its sender has said that it ends.
 *   2. Else it is refused and counted, until such messages, of one sender or several, have come for
 *      200 ms, three of them at least, and none of the running epoch between: then it takes over.
 * So of two senders that go on, the one that began last is heard, as long as it does not pause for
 * 200 ms; leftovers of others change nothing; and a sender that goes on alone is heard 200 ms after
 * the last message of any other, or with its third message if it sends fewer than ten a second,
 * however many others there were. (R runs, S is another epoch, S0 its beginning; times are those of
 * arrival, no sender's clock.)
 *
 *     R R S R S S R ...        leftovers of S, in any number             S refused, R goes on
 *     R R S0 R S R S ...       S restarted, or is a second camera        S from S0 on, R refused
 *     R R S0 S S | R R R ...   S began and was killed                    R again after 200 ms
 *     R R | S S S ...          R was killed; S was refused, or began     S after 200 ms
 *                              with neither flag nor sequence 0
 *     R R(ends) S ...          R said that it ends                       S at once
 *     R S T R T S T | S S ...  several queued up, one of them goes on    S 200 ms after the last T
 *
 * Samples stay as they were sent: a B-scan has the format of its lines. All lines of an acquisition
 * have that of its first; a message of another is refused.
 *
 * Within an epoch the flag "starts" begins a new acquisition; messages from before it are late. A
 * message that ends the acquisition beyond the lines seen shows that those between are missing. A
 * wrong jump (one wrong first_line) closes all B-scans up to it, and its sender's lines are late
 * from then on. When 16 messages in a row that were sent after it have brought only lines that it
 * skipped, each beyond the one before, the next one begins a new acquisition.
 *
 * Which scan lines are of (OCT_LINES_FOLLOWS): a driver that follows octd's scan takes its epochs
 * from those that octd gives for each scan (oct_epochs). Its lines of another scan are refused
 * (OCT_BAD_SCAN); where a change of the scan has been asked for, so are those of drivers that do
 * not follow: nothing tells of which scan these are.
 *
 * One thread calls take, flush and end (the ingest thread). Any thread may read the counts; if it
 * reads dropped or delivered before begun, they are no larger than begun. */
#ifndef OCT_PIPELINE_INGEST_ASSEMBLER_H
#define OCT_PIPELINE_INGEST_ASSEMBLER_H

#include "pipeline/flow/loss.h"
#include "pipeline/flow/ring.h"
#include "pipeline/ingest/driver_watch.h"
#include "pipeline/plan/geometry.h"
#include "pipeline/plan/scan.h"
#include "pipeline/wire/wire.h"

#include <stdatomic.h>

#define OCT_TAKEOVER_NS UINT64_C(200000000)
#define OCT_TAKEOVER_MESSAGES 3u

struct oct_ingest_counts {
    atomic_uint_fast64_t messages;           /* well-formed, duplicates included */
    atomic_uint_fast64_t messages_duplicate; /* a sequence number seen before */
    atomic_uint_fast64_t messages_missed;    /* sequence numbers that had not come when a later
                                                one did; less those reordered: never came */
    atomic_uint_fast64_t messages_reordered; /* of those, arrived after all */
    atomic_uint_fast64_t messages_bad[OCT_N_BAD];
    atomic_uint_fast64_t lines_received; /* placed into a B-scan */
    atomic_uint_fast64_t lines_missing;  /* of delivered B-scans, and of those skipped whole */
    atomic_uint_fast64_t
        lines_cut; /* of those missing: of the B-scan that oct_assembler_end closed,
                                       after the last line that had come; and of the one in whose
                                       middle lines were taken up again, before the first */
    atomic_uint_fast64_t lines_flyback;   /* arrived, and belong to no B-scan (scan.h) */
    atomic_uint_fast64_t lines_duplicate; /* arrived again */
    atomic_uint_fast64_t lines_late;      /* arrived after their B-scan was closed */
    atomic_uint_fast64_t lines_dropped;   /* arrived, but their B-scan got no slot */
    atomic_uint_fast64_t bscans_begun;
    atomic_uint_fast64_t bscans_delivered; /* into the raw ring */
    atomic_uint_fast64_t bscans_dropped;   /* begun without a free slot */
    atomic_uint_fast64_t acquisitions;
    atomic_uint_fast64_t resynchronised; /* of those, begun because a jump was wrong */
    atomic_uint_fast64_t
        ended_at; /* slots published when the last acquisition ended, + 1; 0: none */
    atomic_uint_fast64_t next_line; /* of the last acquisition: one past the highest line seen */
    atomic_uint_fast32_t epoch;     /* of the last acquisition */
    atomic_bool over;               /* its sender has ended it, or the gate was closed */
};

struct oct_assembler;

/* The ring's slots are oct_raw_slot_bytes(geometry) large; the assembler is its writer.
 * patience_us: how long one message may wait for free slots in all before its B-scans are
 * dropped. */
enum oct_err oct_assembler_create(struct oct_assembler **assembler,
                                  const struct oct_geometry *geometry, struct oct_ring *ring,
                                  uint64_t patience_us, struct oct_error *err);

/* Which of the lines that are sent belong to a B-scan, and in which order. Without it all do, in
 * theirs. Before the first take. */
void oct_assembler_set_scan(struct oct_assembler *assembler, const struct oct_scan *scan);

/* Epochs of the scan that runs, first to last. only_followers: lines of a driver that does not
 * follow are refused. */
struct oct_epochs {
    uint32_t first, last;
    bool only_followers;
};
/* Before the first take; without it lines of all epochs are heard. */
void oct_assembler_set_epochs(struct oct_assembler *assembler, const struct oct_epochs *epochs);

/* Changes the patience from the next message on; the ingest shortens it when the gate closes. */
void oct_assembler_set_patience(struct oct_assembler *assembler, uint64_t patience_us);

/* Sets the log of B-scans that were dropped and of those missing at an acquisition's end.
 * Borrowed. */
void oct_assembler_set_losses(struct oct_assembler *assembler, struct oct_loss_log *losses);

/* Lends the payloads that oct_assembler_take gets, to B-scans that arrive whole in one block, each
 * its part: the raw slot points to the lines where they are, and nothing is copied. Both functions
 * run inside the assembler's. */
struct oct_lender {
    void *owner;
    bool (*lend)(void *owner, uint64_t slot);      /* the current payload must stay unchanged
                                                      from now on; false: it is copied */
    void (*give_back)(void *owner, uint64_t slot); /* the slot has no readers any more; fine if
                                                      it borrows nothing */
};

/* The struct is copied. Without a lender every line is copied; B-scans smaller than OCT_LEND_BYTES
 * always are. */
#define OCT_LEND_BYTES 16384u
void oct_assembler_set_lender(struct oct_assembler *assembler, const struct oct_lender *lender);

/* Gives back the payloads of slots without readers, as every take does. */
void oct_assembler_give_back(struct oct_assembler *assembler);

/* Does not flush. NULL is fine. */
void oct_assembler_destroy(struct oct_assembler *assembler);

/* Takes one message of two parts as received; nothing in it is trusted. A malformed one is counted
 * and changes nothing else; the reason is returned. */
enum oct_bad oct_assembler_take(struct oct_assembler *assembler, const void *header,
                                size_t header_bytes, const void *payload, size_t payload_bytes,
                                uint64_t arrival_ns);

/* Counts a message that does not have two parts, and notes it in the driver watch. */
void oct_assembler_refuse(struct oct_assembler *assembler, enum oct_bad reason, unsigned n_parts,
                          const void *first, size_t first_bytes);

/* What the messages look like: driver_watch.h. Lives as long as the assembler. */
struct oct_driver_watch *oct_assembler_driver(struct oct_assembler *assembler);

/* Counts a message whose lines in shared memory cannot be found. */
void oct_assembler_count_bad(struct oct_assembler *assembler, enum oct_bad reason);

/* Delivers a B-scan that has begun, with the rest missing. `ended`: the acquisition is over. */
void oct_assembler_flush(struct oct_assembler *assembler, bool ended);

/* The gate was closed: as flush with `ended`, and the next message begins a new acquisition, in
 * which nothing before its first line counts as missing. */
void oct_assembler_end(struct oct_assembler *assembler);

/* Whether a B-scan has begun and is not complete. */
bool oct_assembler_is_open(const struct oct_assembler *assembler);

struct oct_ingest_counts *oct_assembler_counts(struct oct_assembler *assembler);

#endif
