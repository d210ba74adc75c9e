/* Movement of one layer against another, to parts of a nanometre, over the B-scans of one place, or
 * over the A-lines of one point (M-mode).
 *
 *     q(t0, t) = sum over j of (sum_lower B_t conj B_t0) conj (sum_upper B_t conj B_t0)
 *     dz = arg q / rad,  rad = 2 k n with its sign (optics.h); positive: `lower` went deeper
 *
 * A-line by A-line, so that bulk motion drops out. B_t is moved onto the first B-scan before, by
 * whole A-lines and by parts of a depth pixel (to -50 dB). t0 is the B-scan before, whose steps are
 * summed (`previous`), the first one (`first`), or all are linked: with C the q of all pairs,
 * normalised, the phases are those of the eigenvector of the least value of inv(0.9 |C| + 0.1) o C
 * (Ansari 2018), in blocks of 256 that overlap by half. Unwrapped over t.
 *
 * sd: what the noise makes of a value: of each layer (1 - g^2) / (2 Q g^2), g = SNR / (1 + SNR), Q
 * its independent samples; what speckle that changes adds is not in it. Sources: Spahr 2019, Vakoc
 * 2009.
 *
 * One thread uses a trace at a time. */
#ifndef OCT_ANALYSIS_FLOW_TRACE_H
#define OCT_ANALYSIS_FLOW_TRACE_H

#include "analysis/flow/optics.h"

#define OCT_FLOW_LINK_BLOCK 256u

enum oct_flow_reference { OCT_FLOW_PREVIOUS, OCT_FLOW_FIRST, OCT_FLOW_LINKED };

/* Depths of a layer in an A-line of the first B-scan: first .. end - 1; end <= first: none. */
struct oct_flow_span {
    int32_t first, end;
};

struct oct_flow_trace_setup {
    uint32_t n_lines, depth; /* M, D */
    bool is_of_lines;        /* M-mode: a value an A-line */
    enum oct_flow_reference reference;
    double rad_um;               /* of oct_flow_optics; NaN: values are rad, not nm */
    const double *rho2;          /* [OCT_FLOW_LAGS] of the noise; NULL: found */
    double noise;                /* n0; 0: found in the first B-scan */
    struct oct_workers *workers; /* NULL: the caller alone */
};

struct oct_flow_trace;

/* upper, lower: [M]. OCT_E_NO_MEMORY; OCT_E_ARG: no A-line has both. *trace is NULL on error. */
enum oct_err oct_flow_trace_create(struct oct_flow_trace **trace,
                                   const struct oct_flow_trace_setup *setup,
                                   const struct oct_flow_span *upper,
                                   const struct oct_flow_span *lower, struct oct_error *err);
void oct_flow_trace_destroy(struct oct_flow_trace *trace); /* NULL is fine */

/* The next B-scan: [M][D][2] complex values. nm: the values so far known, [1] or, M-mode, [M]; NaN
 * where an A-line did not come; of `linked` nothing is known before the end. *sd_nm of each. */
enum oct_err oct_flow_trace_put(struct oct_flow_trace *trace, const float *values, double *nm,
                                double *sd_nm, struct oct_error *err);

/* Values so far: B-scans, or A-lines. */
uint64_t oct_flow_trace_n(const struct oct_flow_trace *trace);

/* Power of the darker layer over the noise, less 1: of all so far, at least 0; NaN: nothing came.
 * Below OCT_FLOW_TRACE_LEAST_SNR it may be noise alone, whose power is known to some 10 %. */
#define OCT_FLOW_TRACE_LEAST_SNR 0.2
double oct_flow_trace_snr(const struct oct_flow_trace *trace);

/* nm: [n], of `linked`. OCT_E_NO_MEMORY. */
enum oct_err oct_flow_trace_link(struct oct_flow_trace *trace, double *nm, struct oct_error *err);

/* The phases, rad, of n things from all their pairs: c [n][n][2] Hermitian, |c| <= 1, 1 in the
 * diagonal; phase[0] is 0. n is at most OCT_FLOW_LINK_BLOCK. OCT_E_NO_MEMORY. */
enum oct_err oct_flow_link(const double *c, unsigned n, double *phase, struct oct_error *err);

/* The amplitude spectrum of n values at even times, 2 |sum nm exp(..)| / n without their mean: a
 * sine of 1 nm at one of the frequencies has 1. amplitude: [n / 2 + 1]; NaN counts as the mean.
 * OCT_E_NO_MEMORY. */
enum oct_err oct_flow_spectrum(const double *nm, size_t n, double *amplitude,
                               struct oct_error *err);

#endif
