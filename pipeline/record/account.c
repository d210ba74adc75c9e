#include "pipeline/record/account.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void oct_record_account_close(struct oct_recorder_account *a, uint64_t written)
{
    a->written = written;
    a->pending = a->offered - written;
    for (int r = 0; r < OCT_N_LOSSES; r++)
        a->pending -= a->dropped[r];
}

void oct_record_account_add(struct oct_recorder_account *sum, const struct oct_recorder_account *a)
{
    sum->offered += a->offered;
    for (int r = 0; r < OCT_N_LOSSES; r++)
        sum->dropped[r] += a->dropped[r];
}

uint64_t oct_record_account_dropped(const struct oct_recorder_account *a, char *text, size_t bytes)
{
    uint64_t sum = 0;
    text[0] = '\0';
    for (int r = 0; r < OCT_N_LOSSES; r++) {
        size_t n = strlen(text);
        if (a->dropped[r] > 0)
            snprintf(text + n, bytes - n, "%s%" PRIu64 " %s", sum ? ", " : " (", a->dropped[r],
                     oct_loss_names[r]);
        sum += a->dropped[r];
    }
    size_t n = strlen(text);
    if (sum > 0)
        snprintf(text + n, bytes - n, ")");
    return sum;
}
