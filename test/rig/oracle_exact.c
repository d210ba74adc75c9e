#include "test/rig/oracle_exact.h"

#include "test/rig/oracle_sums.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

#define TURNS 32 /* depths from one evaluation of sine and cosine to the next */

/* Checking each access would take minutes. */
#define UNCHECKED __attribute__((no_sanitize("address", "thread", "undefined")))

static const double two_pi = 6.283185307179586476925286766559;

/* Samples go side by side, [n_groups][OCT_ORACLE_SIDE], those beyond n zero. */
struct sums {
    const struct oct_oracle_exact *of;
    size_t n_groups;
    oct_oracle_lines *x; /* [n_lines][n_groups] */
    double *b;
    atomic_size_t next; /* depth */
    atomic_bool out_of_memory;
};

/* The terms at a depth, [n_groups], and what turns them on by one. */
struct turn {
    oct_oracle_lines *re, *im, *step_re, *step_im;
};

static void fill_lines(const struct sums *s)
{
    const size_t n = s->of->n, n_padded = s->n_groups * OCT_ORACLE_SIDE;
    double *x = (double *)s->x;
    for (size_t j = 0; j < s->of->n_lines; j++)
        for (size_t i = 0; i < n_padded; i++)
            x[j * n_padded + i] = i < n ? s->of->x[j * n + i] : 0;
}

static void fill_steps(const struct sums *s, const struct turn *turn)
{
    double *re = (double *)turn->step_re, *im = (double *)turn->step_im;
    for (size_t i = 0; i < s->n_groups * OCT_ORACLE_SIDE; i++) {
        double angle = i < s->of->n ? two_pi * s->of->place[i] / s->of->p2 : 0;
        re[i] = cos(angle);
        im[i] = -sin(angle);
    }
}

static void begin_turning(const struct sums *s, double d, const struct turn *turn)
{
    const double *term = s->of->term, *place = s->of->place, p2 = s->of->p2;
    double *re = (double *)turn->re, *im = (double *)turn->im;
    for (size_t i = 0; i < s->n_groups * OCT_ORACLE_SIDE; i++) {
        re[i] = im[i] = 0;
        if (i >= s->of->n)
            continue;
        double angle = two_pi * fmod(d * place[i], p2) / p2;
        double cosine = cos(angle), sine = sin(angle);
        re[i] = term[2 * i] * cosine + term[2 * i + 1] * sine;
        im[i] = term[2 * i + 1] * cosine - term[2 * i] * sine;
    }
}

UNCHECKED static void turn_on(const struct turn *turn, size_t n_groups)
{
    for (size_t i = 0; i < n_groups; i++) {
        oct_oracle_lines re = turn->re[i], im = turn->im[i];
        turn->re[i] = re * turn->step_re[i] - im * turn->step_im[i];
        turn->im[i] = re * turn->step_im[i] + im * turn->step_re[i];
    }
}

/* One line and depth. */
UNCHECKED static void sum(const oct_oracle_lines *x, const struct turn *turn, size_t n_groups,
                          double *b)
{
    oct_oracle_lines re = {0}, im = {0};
    b[0] = b[1] = 0;
    for (size_t i = 0; i < n_groups; i++) {
        re += x[i] * turn->re[i];
        im += x[i] * turn->im[i];
    }
    for (size_t side = 0; side < OCT_ORACLE_SIDE; side++) {
        b[0] += re[side];
        b[1] += im[side];
    }
}

/* All lines at TURNS depths: between them the terms are turned on, which is cheaper than sine and
 * cosine and loses less than TURNS roundings. */
static void sum_depths(const struct sums *s, size_t from, const struct turn *turn)
{
    const size_t depth = s->of->depth, n = s->n_groups;
    begin_turning(s, (double)(s->of->first + from), turn);
    for (size_t at = from; at < from + TURNS && at < depth; at++) {
        for (size_t j = 0; j < s->of->n_lines; j++)
            sum(s->x + j * n, turn, n, s->b + 2 * (j * depth + at));
        turn_on(turn, n);
    }
}

static void *work_on_depths(void *arg)
{
    struct sums *s = arg;
    const size_t n = s->n_groups;
    oct_oracle_lines *memory = oct_oracle_lines_alloc(4 * n);
    size_t from;
    if (memory) {
        const struct turn turn = {memory, memory + n, memory + 2 * n, memory + 3 * n};
        fill_steps(s, &turn);
        while ((from = atomic_fetch_add(&s->next, TURNS)) < s->of->depth)
            sum_depths(s, from, &turn);
    } else {
        atomic_store(&s->out_of_memory, true);
    }
    free(memory);
    return NULL;
}

bool oct_oracle_sum_exactly(const struct oct_oracle_exact *of, double *b)
{
    struct sums s = {.of = of, .n_groups = (of->n + OCT_ORACLE_SIDE - 1) / OCT_ORACLE_SIDE, .b = b};
    s.x = oct_oracle_lines_alloc(of->n_lines * s.n_groups);
    const bool done = s.x != NULL;
    if (done) {
        fill_lines(&s);
        oct_oracle_on_all_cores(work_on_depths, &s);
    }
    free(s.x);
    return done && !atomic_load(&s.out_of_memory);
}
