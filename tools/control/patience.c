#include "tools/control/patience.h"

#include "pipeline/base/clock.h"

#include <string.h>

#define MOST_WAIT_S 600.0

static double count_of(const cJSON *object, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    return cJSON_IsNumber(item) ? item->valuedouble : 0;
}

/* While a recording is being closed, pictures are no sign that it gets on: only what is written
 * counts. */
static double count(const struct oct_patience *p, const cJSON *status)
{
    const cJSON *last = cJSON_GetObjectItemCaseSensitive(status, "record_last");
    double sum = count_of(status, "bscans_written") + count_of(status, "bytes_written") +
                 count_of(last, "bscans_saved");
    return strcmp(p->command, "record") == 0 ? sum : sum + count_of(status, "bscans_done");
}

bool oct_patience_lasts(struct oct_patience *p, const cJSON *status, struct oct_error *err)
{
    double now = count(p, status);
    uint64_t now_ns = oct_clock_ns();
    if (p->began_ns == 0) {
        p->began_ns = p->moved_ns = now_ns;
        p->most = now;
    }
    if (now > p->most) {
        p->most = now;
        p->moved_ns = now_ns;
    }
    double still_s = (double)(now_ns - p->moved_ns) * 1e-9;
    double all_s = (double)(now_ns - p->began_ns) * 1e-9;
    if (still_s < p->wait_s && all_s < MOST_WAIT_S)
        return true;
    oct_fail(err, OCT_E_STATE,
             "%s: not done after %.0f s%s: see octctl status and the daemon's log", p->command,
             all_s, still_s < p->wait_s ? "" : ", and the daemon gets on with nothing (--wait)");
    return false;
}
