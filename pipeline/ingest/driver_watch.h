/* Counts the camera driver's messages beside the assembler: how many were right, how many were
 * wrong in which way, and the newest message of each way. daemon/driver.h judges them.
 *
 * The ingest thread notes; any thread reads. A right message costs one addition, and ten times a
 * second a look at one of its lines. A wrong one is copied under a lock; the ingest thread waits
 * for the lock only with the first of a kind. Nothing allocates. */
#ifndef OCT_PIPELINE_INGEST_DRIVER_WATCH_H
#define OCT_PIPELINE_INGEST_DRIVER_WATCH_H

#include "pipeline/ingest/sample_look.h"
#include "pipeline/wire/wire.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

/* A fault, an unsigned: below OCT_N_BAD a refusal by its reason (enum oct_bad), else one of these.
 * The latter are well-formed; they contradict the message before them, of the same epoch, or their
 * samples are of another kind than their header says. */
enum oct_driver_fault {
    OCT_DRIVER_RIGHT = OCT_BAD_NONE,
    OCT_DRIVER_RESENT = OCT_N_BAD,  /* sequence and first_line of the message before */
    OCT_DRIVER_SEQUENCE_STUCK,      /* the sequence of the message before, with other lines */
    OCT_DRIVER_SEQUENCE_JUMPS,      /* lines follow each other, sequence numbers leave some out */
    OCT_DRIVER_LINE_STUCK,          /* the next sequence, the same first_line */
    OCT_DRIVER_LINE_OVERLAPS,       /* first_line rises by less than the lines of a message */
    OCT_DRIVER_LINE_COUNTS_SAMPLES, /* first_line rises by the samples or bytes of a message */
    OCT_DRIVER_STARTS_AGAIN,        /* flag 1 or another epoch, and what ran had not ended: it did
                                       not say so, nor does line 0 follow a whole B-scan; or an
                                       epoch refused that none of the last four had */
    OCT_DRIVER_LINE_WENT_BACK,      /* all lines too late: first_line began again */
    OCT_DRIVER_EPOCH_AGAIN,         /* the same, or sent before, and the sequence began again too */
    OCT_DRIVER_BYTE_SWAPPED,        /* samples: so two looks in a row say, and the last */
    OCT_DRIVER_FLOAT,               /* the same, halves of floats */
    OCT_DRIVER_NO_PUSH, /* counts connections, not messages: another kind of socket, or no ZeroMQ
                           at all */
    OCT_N_DRIVER_FAULTS
};
/* As the status has it; "" for none. */
const char *oct_driver_fault_name(unsigned fault);

/* The newest message of a fault. Of a refused one: the parts that could be read. */
struct oct_driver_message {
    struct oct_lines_header header;
    unsigned char start[8]; /* its first bytes */
    uint64_t header_bytes, payload_bytes;
    unsigned n_parts;
    /* The message that it contradicts; for lines that are too late: the last message before the
     * step back. */
    uint64_t before_sequence, before_line;
    uint32_t before_n_lines;
    uint32_t epoch;  /* that is being received */
    uint16_t format; /* of its samples; 0: no line has come */
};

/* One line of a right message, at most ten times a second. */
struct oct_driver_look {
    uint64_t number;     /* of looks; 0: none yet */
    uint64_t arrival_ns; /* by octd's clock */
    struct oct_lines_header header;
    struct oct_sample_look samples;
};

enum {
    OCT_DRIVER_EPOCHS = 4
}; /* senders at once whose epochs can be distinguished from new
                                   ones */

struct oct_driver_watch {
    atomic_uint_fast64_t n[OCT_N_DRIVER_FAULTS]; /* messages; [OCT_DRIVER_RIGHT]: right ones */
    pthread_mutex_t lock;
    struct oct_driver_message newest[OCT_N_DRIVER_FAULTS]; /* locked, and so the next */
    struct oct_driver_look look;
    /* The ingest thread's own: */
    bool has_before;
    struct oct_lines_header before;
    uint64_t back_sequence, back_line; /* before the last step back */
    uint64_t looked_ns;
    unsigned samples_fault, last_look;  /* of all messages until the next look; of the last one */
    uint32_t epochs[OCT_DRIVER_EPOCHS]; /* the refused epochs seen last */
    unsigned n_epochs;
};

/* Zeroed memory. */
void oct_driver_watch_init(struct oct_driver_watch *watch);
void oct_driver_watch_finish(struct oct_driver_watch *watch);

/* A message that is refused. header: of check_message, as far as it was filled; first: the first
 * part; epoch, format: as in the message. */
struct oct_driver_refusal {
    const struct oct_lines_header *header; /* NULL: not decoded */
    const void *first;
    size_t first_bytes, payload_bytes;
    unsigned n_parts;
    uint32_t epoch;
    uint16_t format;
};
void oct_driver_watch_refuse(struct oct_driver_watch *watch, enum oct_bad bad,
                             const struct oct_driver_refusal *refusal);

/* A message that was taken. */
struct oct_driver_take {
    const struct oct_lines_header *header;
    const void *payload;
    uint64_t arrival_ns;
    uint32_t bscan_lines;
    bool is_useless; /* all its lines had come before, or came too late */
    bool is_behind;  /* its sequence is below the highest of the acquisition */
};
void oct_driver_watch_take(struct oct_driver_watch *watch, const struct oct_driver_take *take);

/* Notes a connection whose handshake failed: OCT_DRIVER_NO_PUSH. */
void oct_driver_watch_connection(struct oct_driver_watch *watch);

/* Any thread. false: none yet. */
bool oct_driver_watch_newest(struct oct_driver_watch *watch, unsigned fault,
                             struct oct_driver_message *message);
bool oct_driver_watch_look(struct oct_driver_watch *watch, struct oct_driver_look *look);

#endif
