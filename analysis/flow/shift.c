/* Registration of complex B-scans. */
#include "analysis/flow/bscan.h"
#include "kernels/device/workers.h"
#include "numeric/parabola.h"

#include <math.h>
#include <stdlib.h>

#define LOOK_LINES 16u /* of the first look */
#define ALL_LINES 128u /* where there are no more, all make the number; else 1 in MOST_STEP */
#define MOST_STEP 8u
#define CLEAR 4.0 /* a first look this far above the mean of its shifts has found the place */
#define MOST_STEPS 12u

enum {
    MOST_X = OCT_FLOW_MOST_LINE_SHIFT,
    MOST_Z = OCT_FLOW_MOST_DEPTH_SHIFT,
    N_X = 2 * MOST_X + 1,
    N_Z = 2 * MOST_Z + 1
};

struct search {
    const struct oct_flow_bscan *a, *b;
    const struct oct_flow_kernels *k;
    struct oct_workers *workers;
    uint32_t step;        /* from line to line */
    double map[N_X][N_Z]; /* mean of |sum|^2; < 0: not known */

    /* While a row of shifts is computed. */
    int x, z, n; /* lines; from depth z on, n of them */
    float *line; /* [lines][n] */
};

/* ---- a row of shifts ---- */

static void look_at_line(const struct search *s, uint32_t line)
{
    const int64_t j = (int64_t)line * s->step, from = j - s->x;
    float *power = s->line + (size_t)line * (unsigned)s->n;
    for (int i = 0; i < s->n; i++)
        power[i] = 0;
    if (from < 0 || from >= s->b->n_lines || !(s->a->power[j] > 0) || !(s->b->power[from] > 0))
        return;
    const struct oct_flow_line a = oct_flow_bscan_line(s->a, (uint32_t)j, 0);
    for (int i = 0; i < s->n; i += (int)OCT_FLOW_SHIFTS) {
        const struct oct_flow_line b = oct_flow_bscan_line(s->b, (uint32_t)from, -(s->z + i));
        float sum[OCT_FLOW_SHIFTS][2];
        if (s->n == 1)
            s->k->cross(a, b, s->a->depth, sum[0]);
        else
            s->k->cross_shifts(a, b, s->a->depth, sum);
        for (int t = 0; t < (int)OCT_FLOW_SHIFTS && i + t < s->n; t++)
            power[i + t] = sum[t][0] * sum[t][0] + sum[t][1] * sum[t][1];
    }
}

static uint32_t n_looked(const struct search *s)
{
    return (s->a->n_lines + s->step - 1) / s->step;
}

static void look_at_lines(void *context, unsigned piece, unsigned worker)
{
    const struct search *s = context;
    (void)worker;
    for (uint32_t i = piece * OCT_FLOW_LINES; i < (piece + 1) * OCT_FLOW_LINES; i++)
        if (i < n_looked(s))
            look_at_line(s, i);
}

/* The map at depths z .. z + n - 1 of x lines; the mean is over the lines that both have. */
static void look_at(struct search *s, int x, int z, int n)
{
    const uint32_t n_lines = n_looked(s);
    const int first = z < -MOST_Z ? -MOST_Z : z, end = z + n > MOST_Z + 1 ? MOST_Z + 1 : z + n;
    uint32_t n_both = 0;
    if (x < -MOST_X || x > MOST_X || end <= first)
        return;
    s->x = x;
    s->z = first;
    s->n = end - first;
    oct_workers_run(s->workers, oct_flow_pieces(n_lines), look_at_lines, s);
    for (uint32_t i = 0; i < n_lines; i++) {
        const int64_t from = (int64_t)i * s->step - x;
        n_both += from >= 0 && from < s->b->n_lines;
    }
    for (int i = 0; i < s->n; i++) {
        double sum = 0;
        for (uint32_t k = 0; k < n_lines; k++)
            sum += (double)s->line[(size_t)k * (unsigned)s->n + (unsigned)i];
        s->map[x + MOST_X][first + i + MOST_Z] = n_both ? sum / n_both : 0;
    }
}

static void forget(struct search *s)
{
    for (int x = 0; x < N_X; x++)
        for (int z = 0; z < N_Z; z++)
            s->map[x][z] = -1;
}

/* ---- where it is largest ---- */

struct place {
    int x, z;
};

static double at(const struct search *s, int x, int z)
{
    return x < -MOST_X || x > MOST_X || z < -MOST_Z || z > MOST_Z ? -1
                                                                  : s->map[x + MOST_X][z + MOST_Z];
}

/* Of the shifts that are known; *mean is over them. */
static struct place find_largest(const struct search *s, double *mean)
{
    struct place best = {0, 0};
    double sum = 0;
    unsigned n = 0;
    for (int x = -MOST_X; x <= MOST_X; x++)
        for (int z = -MOST_Z; z <= MOST_Z; z++) {
            if (at(s, x, z) < 0)
                continue;
            sum += at(s, x, z);
            n++;
            if (at(s, x, z) > at(s, best.x, best.z))
                best = (struct place){x, z};
        }
    *mean = n ? sum / n : 0;
    return best;
}

/* A few lines, all depths: first without a shift of lines, and where that shows nothing with all.
 * False: nothing stands out, as of two that have nothing in common. */
static bool look_first(struct search *s, struct place *best)
{
    double mean;
    s->step = s->a->n_lines / LOOK_LINES > 0 ? s->a->n_lines / LOOK_LINES : 1;
    forget(s);
    look_at(s, 0, -MOST_Z, N_Z);
    *best = find_largest(s, &mean);
    if (at(s, best->x, best->z) > CLEAR * mean)
        return true;
    for (int x = -MOST_X; x <= MOST_X; x++)
        if (x != 0)
            look_at(s, x, -MOST_Z, N_Z);
    *best = find_largest(s, &mean);
    return at(s, best->x, best->z) > CLEAR * mean;
}

/* From there uphill, with more lines, until no neighbour is higher. */
static struct place climb(struct search *s, struct place from)
{
    struct place best = from;
    s->step = s->a->n_lines <= ALL_LINES ? 1 : MOST_STEP;
    forget(s);
    for (unsigned step = 0; step < MOST_STEPS; step++) {
        double mean;
        look_at(s, best.x, best.z - 1, 3);
        for (int x = best.x - 1; x <= best.x + 1; x += 2)
            if (at(s, x, best.z) < 0)
                look_at(s, x, best.z, 1);
        const struct place next = find_largest(s, &mean);
        if (next.x == best.x && next.z == best.z)
            break;
        best = next;
    }
    return best;
}

static double top_of(double before, double middle, double after)
{
    return before < 0 || after < 0 ? 0 : oct_parabola_top(before, middle, after);
}

static double score_of(const struct search *s, double largest)
{
    double a = 0, b = 0;
    for (uint32_t j = 0; j < s->a->n_lines; j++) {
        a += (double)s->a->power[j] * (double)s->b->power[j];
        b += s->a->power[j] > 0 && s->b->power[j] > 0;
    }
    return a > 0 ? sqrt(largest / (a / b)) : 0;
}

enum oct_err oct_flow_shift_find(const struct oct_flow_bscan *a, const struct oct_flow_bscan *b,
                                 struct oct_workers *workers, struct oct_flow_shift *shift,
                                 struct oct_error *err)
{
    struct search *s = malloc(sizeof(*s));
    float *line = malloc((size_t)a->n_lines * N_Z * sizeof(*line));
    *shift = (struct oct_flow_shift){0, 0, 0};
    if (!s || !line) {
        free(s);
        free(line);
        return oct_fail(err, OCT_E_NO_MEMORY, "flow: out of memory");
    }
    *s = (struct search){
        .a = a, .b = b, .k = oct_flow_kernels_best(), .workers = workers, .line = line};
    struct place best;
    if (a->has_lines && b->has_lines && look_first(s, &best)) {
        best = climb(s, best);
        const double most = at(s, best.x, best.z);
        shift->lines = best.x + top_of(at(s, best.x - 1, best.z), most, at(s, best.x + 1, best.z));
        shift->depth = best.z + top_of(at(s, best.x, best.z - 1), most, at(s, best.x, best.z + 1));
        shift->score = score_of(s, most);
    }
    free(s);
    free(line);
    return OCT_OK;
}
