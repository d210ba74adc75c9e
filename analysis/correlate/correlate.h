/* Correlation of two pictures over whole-pixel shifts d = (dy, dx), by FFT.
 *
 *     P(d) = sum over p of f(p) g(p + d),    N(d) = number of p with f(p) and g(p + d) valid
 *
 *     eq1      C = P(d) / P(0)                     Lu et al. 2010, Eq. 1 (with I(x - X0, y - Y0))
 *     overlap  C = [P(d) / N(d)] / [P(0) / N(0)]
 *     zncc     C = (P - S_f S_g / N) / sqrt((S_ff - S_f^2 / N) (S_gg - S_g^2 / N))   Padfield 2012
 *
 * f and g less the mean of their valid pixels (but with keep_mean); S_f, S_g, S_ff, S_gg over the
 * overlap. In the cross-correlation of eq1 and overlap the divisor is sqrt(P_ff(0) P_gg(0)), with
 * each picture's own N, so that a picture with itself is 1 at d = 0.
 *
 * Sign: with f moving and g the reference, the shift d of the largest C puts moving(p) onto
 * reference(p + d), as the "shift required to register moving with reference" of scikit-image.
 *
 * Accuracy against double precision: 1e-6 for eq1, 1e-6 N(0) / N(d) for overlap, 1e-5 for zncc
 * where N is at least 0.3 of its largest. The CPU and the CUDA engine keep the same bounds.
 *
 * One thread uses a correlator at a time; different ones are independent. */
#ifndef OCT_ANALYSIS_CORRELATE_CORRELATE_H
#define OCT_ANALYSIS_CORRELATE_CORRELATE_H

#include "numeric/picture.h"

enum oct_correlation_norm {
    OCT_CORRELATION_OVERLAP,
    OCT_CORRELATION_EQ1,
    OCT_CORRELATION_ZNCC,
};

struct oct_correlator_setup {
    uint32_t height, width;     /* of f */
    uint32_t g_height, g_width; /* of g; equal to those of f where g is f itself */
    uint32_t max_dy, max_dx;    /* at most max(height, g_height) - 1, max(width, g_width) - 1 */
    enum oct_correlation_norm norm;
    bool keep_mean;       /* eq1 and overlap: pictures as they are */
    bool masked;          /* pictures may have masks */
    double min_overlap;   /* zncc: C is NaN where N is below this part of the largest N */
    unsigned n_batch;     /* most pictures a run; 1: one at a time */
    const char *gpus;     /* as pipeline.gpus; for CUDA */
    unsigned deadline_ms; /* of a GPU; 0: 2000 */
};

/* OCT_E_ARG: sizes or shifts that cannot be. Inline: device code has it without the CPU's. */
static inline enum oct_err oct_correlator_check(const struct oct_correlator_setup *s,
                                                struct oct_error *err)
{
    const uint32_t height = s->height > s->g_height ? s->height : s->g_height;
    const uint32_t width = s->width > s->g_width ? s->width : s->g_width;
    if (s->height == 0 || s->width == 0 || s->g_height == 0 || s->g_width == 0 ||
        height > OCT_PICTURE_MOST_SIDE || width > OCT_PICTURE_MOST_SIDE)
        return oct_fail(err, OCT_E_ARG,
                        "pictures of %u x %u pixels cannot be correlated: a side "
                        "has 1 to %u",
                        height, width, OCT_PICTURE_MOST_SIDE);
    if (s->max_dy >= height || s->max_dx >= width)
        return oct_fail(err, OCT_E_ARG,
                        "shifts to %u x %u of pictures of %u x %u pixels: the largest are %u x %u",
                        s->max_dy, s->max_dx, height, width, height - 1, width - 1);
    return OCT_OK;
}

struct oct_correlator;

struct oct_correlator_ops {
    const char *name; /* "cpu", "cuda" */

    /* *correlator is NULL on error. OCT_E_ARG: sizes or shifts that cannot be; OCT_E_BACKEND: no
     * device; OCT_E_NO_MEMORY. */
    enum oct_err (*create)(struct oct_correlator **correlator,
                           const struct oct_correlator_setup *setup, struct oct_error *err);

    /* Keeps the spectrum of g for all runs that follow; g is borrowed for the call. NULL: each f is
     * correlated with itself, as after create. OCT_E_ARG: g has no contrast, or fewer than 10 % of
     * its pixels are valid; the reference before stays. */
    enum oct_err (*set_reference)(struct oct_correlator *correlator, const struct oct_picture *g,
                                  struct oct_error *err);

    /* Correlates n <= n_batch pictures f. c2d: [n][2 max_dy + 1][2 max_dx + 1], the first row is
     * dy = -max_dy, the first column dx = -max_dx; NaN where C is not defined. OCT_E_ARG: as above,
     * *which is the picture. OCT_E_BACKEND: the device is gone; only destroy is legal then. */
    enum oct_err (*run)(struct oct_correlator *correlator, const struct oct_picture *f, unsigned n,
                        float *c2d, unsigned *which, struct oct_error *err);

    /* The name of the engine that computes at present. NULL: `name`, always. */
    const char *(*running)(const struct oct_correlator *correlator);

    void (*destroy)(struct oct_correlator *correlator); /* NULL is fine */
};

extern const struct oct_correlator_ops oct_correlator_cpu, oct_correlator_cuda;

/* "auto", "cpu" or "cuda". The table returned is one that fails over: when the CUDA engine says
 * OCT_E_BACKEND, the CPU goes on with the same pictures, and the log says so. why: one line which
 * engine was taken and for what reason. */
enum oct_err oct_correlator_select(const struct oct_correlator_ops **ops,
                                   struct oct_correlator **correlator, const char *backend,
                                   const struct oct_correlator_setup *setup, char *why,
                                   size_t why_bytes, struct oct_error *err);

#endif
