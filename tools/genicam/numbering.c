#include "tools/genicam/numbering.h"

#include <math.h>

#define TURN 65535u       /* ids that 16 bits have; 0 is none */
#define STEADY_STEPS 100u /* frames after which the pace is trusted */
#define LATE_FRAMES 100u  /* ids run back at most so far for a frame that is late */
#define FITS_FRAMES 2.0
#define FITS_SHARE 1e-4

void oct_numbering_init(struct oct_numbering *numbering, bool is_wide)
{
    *numbering = (struct oct_numbering){.is_wide = is_wide};
}

double oct_numbering_period_ns(const struct oct_numbering *n)
{
    return n->n_steps > 0 && n->last_ns > n->first_ns
               ? (double)(n->last_ns - n->first_ns) / (double)n->n_steps
               : 0;
}

/* Frames that fit between the last one and this one by the clock, this one included; 0: the clock
 * does not say. */
static double steps_by_clock(const struct oct_numbering *n, uint64_t time_ns)
{
    const double period = oct_numbering_period_ns(n);
    if (n->n_steps < STEADY_STEPS || period <= 0 || time_ns <= n->last_ns)
        return 0;
    return (double)(time_ns - n->last_ns) / period;
}

static bool fits_clock(const struct oct_numbering *n, uint64_t steps, uint64_t time_ns)
{
    const double off = fabs(steps_by_clock(n, time_ns) - (double)steps);
    return off <= FITS_FRAMES + FITS_SHARE * (double)steps;
}

/* Whole turns that the ids do not show. */
static uint64_t turns_by_clock(const struct oct_numbering *n, uint64_t steps, uint64_t time_ns)
{
    const double by_clock = steps_by_clock(n, time_ns);
    const double turns = round((by_clock - (double)steps) / TURN);
    if (turns < 1)
        return 0;
    return fits_clock(n, steps + (uint64_t)turns * TURN, time_ns) ? (uint64_t)turns * TURN : 0;
}

/* The pace is that of a run without pauses: one that differs by half a frame begins another. */
static void keep_pace(struct oct_numbering *n, uint64_t steps, uint64_t time_ns)
{
    const double period = oct_numbering_period_ns(n);
    const double wanted = period * (double)steps;
    const double is = time_ns > n->last_ns ? (double)(time_ns - n->last_ns) : 0;
    const bool is_steady =
        time_ns > n->last_ns && n->last_ns > 0 &&
        (period <= 0 || fabs(is - wanted) <= period * (0.5 + FITS_SHARE * (double)steps));
    if (is_steady) {
        n->n_steps += steps;
    } else {
        n->first_ns = time_ns;
        n->n_steps = 0;
    }
    n->last_ns = time_ns;
}

/* Ids began anew with this frame: the clock alone says what was lost. */
static uint64_t lost_by_clock(const struct oct_numbering *n, uint64_t time_ns)
{
    const double steps = round(steps_by_clock(n, time_ns));
    return steps > 1 ? (uint64_t)steps - 1 : 0;
}

/* Whether so many frames in a row came late that they are not: ids and clock began anew. */
static bool is_new_run(struct oct_numbering *n, uint64_t id, uint64_t time_ns)
{
    const bool follows = n->n_late_run > 0 && id > n->late_id && time_ns >= n->late_ns;
    n->n_late_run = follows ? n->n_late_run + 1 : 1;
    n->late_id = id;
    n->late_ns = time_ns;
    return n->n_late_run > LATE_FRAMES;
}

static enum oct_numbering_verdict begin_anew(struct oct_numbering *n, uint64_t id, uint64_t time_ns,
                                             uint64_t *n_lost)
{
    const bool is_back_a_little = id > 1 && id < n->last_id && n->last_id - id <= LATE_FRAMES;
    const bool is_late = time_ns > 0 ? time_ns <= n->last_ns : is_back_a_little;
    if (is_late && !is_new_run(n, id, time_ns)) {
        n->n_late++;
        return OCT_FRAME_LATE;
    }
    *n_lost = is_late ? n->n_late_run - 1 : lost_by_clock(n, time_ns);
    n->n_late_run = 0;
    n->n_anew++;
    n->n_lost += *n_lost;
    n->last_id = id;
    n->last_ns = n->first_ns = time_ns;
    n->n_steps = 0;
    return OCT_FRAME_ANEW;
}

/* From the last id to this one, forward; of 16 bits up to a turn. */
static uint64_t steps_by_id(const struct oct_numbering *n, uint64_t id)
{
    if (n->is_wide)
        return id - n->last_id;
    const uint64_t steps = (id + TURN - n->last_id % TURN) % TURN;
    return steps == 0 && id != n->last_id ? 1 : steps; /* 0 stands for 65535, but not in all */
}

enum oct_numbering_verdict oct_numbering_next(struct oct_numbering *n, uint64_t id,
                                              uint64_t time_ns, uint64_t *n_lost)
{
    *n_lost = 0;
    n->is_wide = n->is_wide || id > TURN;
    if (!n->has_last) {
        n->has_last = true;
        n->last_id = id;
        n->last_ns = n->first_ns = time_ns;
        return OCT_FRAME_NEXT;
    }
    const uint64_t steps = steps_by_id(n, id);
    const uint64_t half = n->is_wide ? UINT64_MAX / 2 : TURN / 2;
    if (id == n->last_id && turns_by_clock(n, 0, time_ns) == 0) {
        n->n_late++;
        return OCT_FRAME_LATE;
    }
    if (steps > half && (n->is_wide || !fits_clock(n, steps, time_ns)))
        return begin_anew(n, id, time_ns, n_lost);
    const uint64_t all = n->is_wide ? steps : steps + turns_by_clock(n, steps, time_ns);
    *n_lost = all - 1;
    n->n_lost += *n_lost;
    n->n_late_run = 0;
    keep_pace(n, all, time_ns);
    n->last_id = id;
    return OCT_FRAME_NEXT;
}
