/* The camera's sender, as seen from its messages: whether lines come, and whether it went away in
 * the middle of a volume. Main thread only. */
#ifndef OCT_DAEMON_SOURCE_H
#define OCT_DAEMON_SOURCE_H

#include "pipeline/ingest/assembler.h"

#include <stdbool.h>
#include <stdint.h>

struct oct_source {
    bool streaming;                /* lines came within the quiet time, and more are to come */
    bool lost;                     /* silent in the middle of a volume, without a message that ends
                                  the acquisition */
    uint64_t n_losses;             /* how often it was lost */
    uint64_t n_resynchronised;     /* when last looked at */
    uint64_t n_messages, heard_ns; /* when last looked at */
};

/* Looks at the counts. quiet_ns: how long a pause may last; volume_lines: A-lines of a volume. Logs
 * a loss and its end, and a wrong jump. */
void oct_source_look(struct oct_source *source, const struct oct_ingest_counts *counts,
                     uint64_t quiet_ns, uint64_t volume_lines, uint64_t now_ns);

#endif
