#include "analysis/cells/gicov.h"

#include "pipeline/base/simd.h"

#include <math.h>
#include <string.h>

/* The sums over samples that fall onto one pixel. */
struct together {
    double x, y;                /* of e: their direction, times `length` */
    double length;              /* |sum e| */
    double along, across, skew; /* sums of squares in that direction, across, and of products */
};

static struct together join(const struct oct_cells_circles *circles, const unsigned *samples,
                            unsigned n)
{
    struct together t = {0};
    for (unsigned i = 0; i < n; i++) {
        t.x += circles->cosine[samples[i]];
        t.y += circles->sine[samples[i]];
    }
    t.length = hypot(t.x, t.y);
    for (unsigned i = 0; i < n && t.length > 0; i++) {
        const double c = circles->cosine[samples[i]], s = circles->sine[samples[i]];
        const double u = (c * t.x + s * t.y) / t.length, v = (s * t.x - c * t.y) / t.length;
        t.along += u * u;
        t.across += v * v;
        t.skew += u * v;
    }
    return t;
}

static struct oct_cells_group group_of(const struct together *t, ptrdiff_t offset)
{
    const double root = sqrt(t->along - t->across);
    return (struct oct_cells_group){
        .offset = offset,
        .a = (float)(root * t->x / t->length),
        .b = (float)(root * t->y / t->length),
        .w = (float)(t->length / root),
        .c = (float)t->across,
    };
}

/* Samples at the place of sample i, from i on. */
static unsigned same_pixel(const struct oct_cells_circle *circle, unsigned i, unsigned *samples)
{
    unsigned n = 0;
    for (unsigned j = i; j < OCT_CELLS_SAMPLES; j++)
        if (circle->dx[j] == circle->dx[i] && circle->dy[j] == circle->dy[i])
            samples[n++] = j;
    return n;
}

static void init_circle(struct oct_cells_gicov_circle *out, const struct oct_cells_circles *circles,
                        const struct oct_cells_circle *circle, size_t row)
{
    struct oct_cells_group joint[OCT_CELLS_SAMPLES];
    bool done[OCT_CELLS_SAMPLES] = {false};
    double excess = 0;
    for (unsigned i = 0; i < OCT_CELLS_SAMPLES; i++) {
        unsigned samples[OCT_CELLS_SAMPLES];
        if (done[i])
            continue;
        const unsigned n = same_pixel(circle, i, samples);
        const ptrdiff_t offset = circle->dy[i] * (ptrdiff_t)row + circle->dx[i];
        const struct together t = join(circles, samples, n);
        /* Angles that are not symmetric about their mean cannot be joined this way. */
        const bool joins = n > 1 && t.along - t.across > 0.1 && fabs(t.skew) < 1e-9;
        for (unsigned j = 0; j < n; j++) {
            const struct oct_cells_group single = {offset, (float)circles->cosine[samples[j]],
                                                   (float)circles->sine[samples[j]], 1, 0};
            done[samples[j]] = true;
            if (!joins)
                out->group[out->n_single++] = single;
        }
        if (joins) {
            joint[out->n_joint++] = group_of(&t, offset);
            excess += n - t.length * t.length / (t.along - t.across);
        }
    }
    out->excess = (float)excess;
    memcpy(out->group + out->n_single, joint, out->n_joint * sizeof(*joint));
    for (unsigned i = 0; i < OCT_CELLS_SCOUTS; i++) {
        const unsigned s = i * OCT_CELLS_SAMPLES / OCT_CELLS_SCOUTS;
        out->scout[i] = (struct oct_cells_group){
            .offset = circle->dy[s] * (ptrdiff_t)row + circle->dx[s],
            .a = (float)(circles->cosine[s] / OCT_CELLS_SCOUTS),
            .b = (float)(circles->sine[s] / OCT_CELLS_SCOUTS),
        };
    }
}

void oct_cells_gicov_init(struct oct_cells_gicov *gicov, const struct oct_cells_circles *circles,
                          const struct oct_cells_gradient *gradient)
{
    *gicov = (struct oct_cells_gicov){
        .n = circles->n,
        .border = circles->border,
        .row = gradient->row,
        .plane = gradient->plane,
    };
    for (unsigned k = 0; k < circles->n; k++)
        init_circle(&gicov->circle[k], circles, &circles->circle[k], gradient->row);
}

const struct oct_cells_scorer *oct_cells_scorer_select(const char *name)
{
    static const struct oct_cells_scorer *const sets[OCT_N_SIMD + 1] = {
        [OCT_SIMD_PLAIN] = &oct_cells_scorer_plain,
#if defined(__x86_64__)
        [OCT_SIMD_AVX2] = &oct_cells_scorer_avx2,
        [OCT_SIMD_AVX512] = &oct_cells_scorer_avx512,
#endif
    };
    return sets[oct_simd_choose(name)];
}
