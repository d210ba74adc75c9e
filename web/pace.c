#include "web/pace.h"

#include "pipeline/base/clock.h"

#include <math.h>
#include <string.h>

#define FIRST_LEVEL 2u
#define UNKNOWN_MS 500.0 /* a way there and back, before there was an answer */
#define SLOW_MS 150.0    /* so much later, pictures become smaller */
#define FAST_MS 60.0     /* less, and they become better */
#define WORSE_NS (500 * OCT_NS_PER_MS)
#define FIRST_BETTER_NS (300 * OCT_NS_PER_MS)
#define BETTER_NS (3 * OCT_NS_PER_S)
#define MOST_BETTER_NS (24 * OCT_NS_PER_S)
#define QUICKEST_NS (15 * OCT_NS_PER_S)

void oct_web_pace_init(struct oct_web_pace *pace, uint64_t now_ns)
{
    *pace = (struct oct_web_pace){.level = FIRST_LEVEL,
                                  .least_ms = INFINITY,
                                  .least_before_ms = INFINITY,
                                  .since_ns = now_ns,
                                  .level_ns = now_ns,
                                  .better_ns = FIRST_BETTER_NS};
}

static double way_ms(const struct oct_web_pace *pace)
{
    const double ms = fmin(pace->least_ms, pace->least_before_ms);
    return isfinite(ms) ? ms : UNKNOWN_MS;
}

/* What waits too long before there is an answer is as late as what was answered late. */
static double late_ms(const struct oct_web_pace *pace, uint64_t now_ns)
{
    double ms = pace->late_ms;
    for (unsigned i = 0; i < OCT_WEB_MOST_WAITING; i++)
        if (pace->waiting[i].serial && pace->waiting[i].counts)
            ms = fmax(ms, (double)(now_ns - pace->waiting[i].sent_ns) / 1e6 - way_ms(pace));
    return ms;
}

bool oct_web_pace_has_room(const struct oct_web_pace *pace, enum oct_web_kind kind, uint64_t now_ns)
{
    const bool is_late = late_ms(pace, now_ns) > SLOW_MS;
    unsigned n = 0, n_of_kind = 0;
    for (unsigned i = 0; i < OCT_WEB_MOST_WAITING; i++) {
        n += pace->waiting[i].serial != 0;
        n_of_kind += pace->waiting[i].serial && pace->waiting[i].kind == kind;
    }
    return n < (is_late ? 2 : OCT_WEB_MOST_WAITING) &&
           n_of_kind < (kind == OCT_WEB_BSCAN && !is_late ? 2 : 1);
}

static void find_level(struct oct_web_pace *pace, uint64_t now_ns)
{
    const double ms = late_ms(pace, now_ns);
    if (ms > SLOW_MS && pace->level + 1 < OCT_WEB_N_LEVELS && now_ns > pace->level_ns + WORSE_NS) {
        pace->level += ms > 3 * SLOW_MS && pace->level + 2 < OCT_WEB_N_LEVELS ? 2 : 1;
        pace->level_ns = now_ns;
        /* It was better than the link is: the next try comes later. */
        pace->better_ns = pace->better_ns < BETTER_NS        ? BETTER_NS
                          : pace->better_ns < MOST_BETTER_NS ? 2 * pace->better_ns
                                                             : MOST_BETTER_NS;
    } else if (ms < FAST_MS && pace->level > 0 && now_ns > pace->level_ns + pace->better_ns) {
        pace->level--;
        pace->level_ns = now_ns;
    } else if (ms >= FAST_MS && ms <= SLOW_MS) {
        pace->level_ns = now_ns;
    }
}

unsigned oct_web_pace_level(struct oct_web_pace *pace, uint64_t now_ns)
{
    find_level(pace, now_ns);
    return pace->level;
}

void oct_web_pace_sent(struct oct_web_pace *pace, enum oct_web_kind kind, uint32_t serial,
                       bool counts, uint64_t now_ns)
{
    for (unsigned i = 0; i < OCT_WEB_MOST_WAITING; i++)
        if (!pace->waiting[i].serial) {
            pace->waiting[i].serial = serial;
            pace->waiting[i].kind = kind;
            pace->waiting[i].counts = counts;
            pace->waiting[i].sent_ns = now_ns;
            return;
        }
}

void oct_web_pace_answered(struct oct_web_pace *pace, double ms, uint64_t now_ns)
{
    if (now_ns - pace->since_ns > QUICKEST_NS) {
        pace->least_before_ms = pace->least_ms;
        pace->least_ms = INFINITY;
        pace->since_ns = now_ns;
    }
    pace->least_ms = fmin(pace->least_ms, ms);
}

void oct_web_pace_seen(struct oct_web_pace *pace, uint32_t serial, uint64_t now_ns)
{
    for (unsigned i = 0; i < OCT_WEB_MOST_WAITING; i++) {
        if (!pace->waiting[i].serial || pace->waiting[i].serial != serial)
            continue;
        const double ms = (double)(now_ns - pace->waiting[i].sent_ns) / 1e6;
        pace->waiting[i].serial = 0;
        if (pace->waiting[i].counts) {
            oct_web_pace_answered(pace, ms, now_ns);
            pace->late_ms += 0.2 * (ms - way_ms(pace) - pace->late_ms);
            find_level(pace, now_ns);
        }
        return;
    }
}

void oct_web_pace_forget(struct oct_web_pace *pace)
{
    memset(pace->waiting, 0, sizeof(pace->waiting));
}
