#include "pipeline/plan/waveform.h"

#include <math.h>
#include <stdlib.h>

/* Of one axis at a line: um, um a line, um a line^2. */
struct state {
    double at, speed, acceleration;
};

double oct_mirror_volts(const struct oct_mirrors *mirrors, double um)
{
    return um / mirrors->um_per_degree * mirrors->volts_per_degree;
}

/* The larger side of the box around the way, um. */
static double field_um(const struct oct_scan *s)
{
    struct oct_scan_box box = OCT_SCAN_NO_BOX;
    for (uint32_t b = 0; b < s->n_bscans; b++)
        for (uint32_t j = 0; j < s->n_lines; j++) {
            double um[2];
            oct_scan_position(s, b, j, um);
            oct_scan_box_grow(&box, um);
        }
    return fmax(box.high[0] - box.low[0], box.high[1] - box.low[1]);
}

static struct state state_at(const struct oct_scan *s, uint32_t b, double i, int axis)
{
    double before[2], here[2], after[2];
    oct_scan_way(s, b, i - 1, before);
    oct_scan_way(s, b, i, here);
    oct_scan_way(s, b, i + 1, after);
    return (struct state){here[axis], (after[axis] - before[axis]) / 2,
                          after[axis] - 2 * here[axis] + before[axis]};
}

/* The polynomial from a to b over n lines, at i. */
static double turn_at(const struct state *a, const struct state *b, double n, double i)
{
    const double t = i / n, d = b->at - a->at;
    const double v0 = a->speed * n, v1 = b->speed * n;
    const double c0 = a->acceleration * n * n, c1 = b->acceleration * n * n;
    const double k3 = 10 * d - 6 * v0 - 4 * v1 - 1.5 * c0 + 0.5 * c1;
    const double k4 = -15 * d + 8 * v0 + 7 * v1 + 1.5 * c0 - c1;
    const double k5 = 6 * d - 3 * (v0 + v1) - 0.5 * c0 + 0.5 * c1;
    return a->at + t * (v0 + t * (c0 / 2 + t * (k3 + t * (k4 + t * k5))));
}

/* The most that one axis asks for, of the limits. */
struct demand {
    double speed, acceleration;
};

struct limits {
    double speed, acceleration; /* um a line, um a line^2 */
};

static void note_step(struct demand *most, const struct limits *limits, double before, double here,
                      double after)
{
    most->speed = fmax(most->speed, fabs(after - here) / limits->speed);
    most->acceleration =
        fmax(most->acceleration, fabs(after - 2 * here + before) / limits->acceleration);
}

/* Of the turn after B-scan b over n lines between. */
static void demand_of_turn(const struct oct_scan *s, const struct limits *limits, uint32_t b,
                           uint32_t n, struct demand *most)
{
    for (int axis = 0; axis < 2; axis++) {
        const struct state from = state_at(s, b, s->n_lines - 1, axis);
        const struct state to = state_at(s, (b + 1) % s->n_bscans, 0, axis);
        double before = from.at - from.speed, here = from.at;
        for (uint32_t i = 1; i <= n + 2; i++) {
            const double after = i <= n + 1 ? turn_at(&from, &to, n + 1, i) : to.at + to.speed;
            note_step(most, limits, before, here, after);
            before = here;
            here = after;
        }
    }
}

static struct demand demand_of_turns(const struct oct_scan *s, const struct limits *limits,
                                     uint32_t n)
{
    struct demand most = {0};
    for (uint32_t b = 0; b < s->n_bscans; b++)
        demand_of_turn(s, limits, b, n, &most);
    return most;
}

static struct demand demand_of_way(const struct oct_scan *s, const struct limits *limits)
{
    struct demand most = {0};
    for (uint32_t b = 0; b < s->n_bscans; b++)
        for (uint32_t i = 1; i + 1 < s->n_lines; i++) {
            double um[3][2];
            for (uint32_t k = 0; k < 3; k++)
                oct_scan_way(s, b, i - 1 + k, um[k]);
            for (int axis = 0; axis < 2; axis++)
                note_step(&most, limits, um[0][axis], um[1][axis], um[2][axis]);
        }
    return most;
}

static bool is_within(const struct demand *d)
{
    return d->speed <= 1 && d->acceleration <= 1;
}

static enum oct_err find_limits(const struct oct_scan *s, const struct oct_mirrors *mirrors,
                                struct limits *limits, struct oct_error *err)
{
    const double step = mirrors->step_us * 1e-6 * mirrors->line_rate_hz, field = field_um(s);
    const uint64_t n = (uint64_t)s->n_bscans * oct_scan_sent_lines(s);
    *limits = (struct limits){2 * field / step, 4 * field / step / step};
    if (!(field > 0))
        return oct_fail_key(err, OCT_E_CONFIG, "scan.width_um",
                            "scan.width_um: is 0: mirrors are told by how much to turn from the "
                            "field's size (scan.width_um, scan.height_um)");
    if (s->protocol.line_repeats > 1)
        return oct_fail_key(err, OCT_E_CONFIG, "scan.line_repeats",
                            "scan.line_repeats: is %u: mirrors go on steadily: set it to 1",
                            s->protocol.line_repeats);
    return n <= OCT_WAVEFORM_MOST_LINES
               ? OCT_OK
               : oct_fail_key(err, OCT_E_CONFIG, "scan.bscans",
                              "scan.bscans: a volume has %llu lines, %llu are the most here",
                              (unsigned long long)n, (unsigned long long)OCT_WAVEFORM_MOST_LINES);
}

enum oct_err oct_waveform_flyback(const struct oct_scan *s, const struct oct_mirrors *mirrors,
                                  uint32_t *lines, struct oct_error *err)
{
    struct limits limits;
    enum oct_err e = find_limits(s, mirrors, &limits, err);
    if (e)
        return e;
    const struct demand way = demand_of_way(s, &limits);
    if (!is_within(&way))
        return oct_fail_key(err, OCT_E_CONFIG, "scan.line_rate_hz",
                            "scan.line_rate_hz: mirrors with a step of %g us cannot follow the "
                            "pattern %s: it asks for %.2f of their speed and %.2f of their "
                            "acceleration; lower it, or take more lines a B-scan",
                            mirrors->step_us, oct_scan_pattern_names[s->pattern], way.speed,
                            way.acceleration);
    for (*lines = 0; *lines <= s->n_lines; *lines += 1 + *lines / 64) {
        const struct demand turns = demand_of_turns(s, &limits, *lines);
        if (is_within(&turns))
            return OCT_OK;
    }
    return oct_fail_key(err, OCT_E_CONFIG, "scan.step_us",
                        "scan.step_us: mirrors with a step of %g us do not come back within the "
                        "%u lines of a B-scan: take more lines a B-scan, or a lower "
                        "scan.line_rate_hz",
                        mirrors->step_us, s->n_lines);
}

void oct_waveform_line(const struct oct_scan *s, uint64_t line, double um[2], bool *is_line)
{
    const uint32_t sent = oct_scan_sent_lines(s), lag = oct_scan_lag(s), n = s->n_lines;
    const uint32_t b = (uint32_t)(line / sent % s->n_bscans), i = (uint32_t)(line % sent);
    *is_line = i >= lag && i < lag + n;
    if (i < n) {
        oct_scan_way(s, b, i, um);
        return;
    }
    for (int axis = 0; axis < 2; axis++) {
        const struct state from = state_at(s, b, n - 1, axis);
        const struct state to = state_at(s, (b + 1) % s->n_bscans, 0, axis);
        um[axis] = turn_at(&from, &to, sent - n + 1, i - n + 1);
    }
}

static void note_demand(struct oct_waveform *w, const struct limits *limits)
{
    struct demand most = {0};
    for (size_t i = 0; i < w->n; i++)
        for (int axis = 0; axis < 2; axis++)
            note_step(&most, limits, w->um[(i + w->n - 1) % w->n][axis], w->um[i][axis],
                      w->um[(i + 1) % w->n][axis]);
    w->speed = most.speed;
    w->acceleration = most.acceleration;
}

enum oct_err oct_waveform_init(struct oct_waveform *w, const struct oct_scan *s,
                               const struct oct_mirrors *mirrors, struct oct_error *err)
{
    struct limits limits;
    uint32_t least = 0;
    *w = (struct oct_waveform){0};
    enum oct_err e = find_limits(s, mirrors, &limits, err);
    e = e ? e : oct_waveform_flyback(s, mirrors, &least, err);
    if (e)
        return e;
    const struct demand turns = demand_of_turns(s, &limits, s->flyback_lines);
    if (!is_within(&turns))
        return oct_fail_key(err, OCT_E_CONFIG, "scan.flyback_lines",
                            "scan.flyback_lines: %u are too few for mirrors with a step of %g us: "
                            "%u are needed (octctl scan --fit takes them)",
                            s->flyback_lines, mirrors->step_us, least);
    w->n = (size_t)s->n_bscans * oct_scan_sent_lines(s);
    w->um = malloc(w->n * sizeof(*w->um));
    w->is_line = calloc(w->n, 1);
    if (!w->um || !w->is_line) {
        oct_waveform_finish(w);
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the waveforms of a scan");
    }
    for (size_t i = 0; i < w->n; i++) {
        bool is_line;
        oct_waveform_line(s, i, w->um[i], &is_line);
        w->is_line[i] = is_line;
    }
    w->useful = (double)s->n_lines / oct_scan_sent_lines(s);
    note_demand(w, &limits);
    return OCT_OK;
}

void oct_waveform_finish(struct oct_waveform *w)
{
    free(w->um);
    free(w->is_line);
    *w = (struct oct_waveform){0};
}
