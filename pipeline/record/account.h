/* A recording's account, of B-scans by number: offered = written + pending + the sum of dropped. A
 * recording offers every number from its first B-scan to its last, whether it came or not. */
#ifndef OCT_PIPELINE_RECORD_ACCOUNT_H
#define OCT_PIPELINE_RECORD_ACCOUNT_H

#include "pipeline/flow/loss.h"

#include <stddef.h>
#include <stdint.h>

struct oct_recorder_account {
    uint64_t offered, written;
    uint64_t pending;               /* accepted, not synced yet */
    uint64_t dropped[OCT_N_LOSSES]; /* by reason (loss.h) */
};

/* Sets written, and pending to what is neither written nor dropped. */
void oct_record_account_close(struct oct_recorder_account *account, uint64_t written);

/* Adds what was offered and dropped. */
void oct_record_account_add(struct oct_recorder_account *sum,
                            const struct oct_recorder_account *account);

/* How many were dropped; text: " (3 source, 1 engine)", or "" when none was. */
uint64_t oct_record_account_dropped(const struct oct_recorder_account *account, char *text,
                                    size_t bytes);

#endif
