/* The oracle: contract sections 1 and 6 word for word, in double precision, by direct sums.
 *
 * Written from the contract alone; it shares no code with pipeline/ or kernels/ and uses no FFT.
 * Every step is the sum that defines it, for every line and every depth pixel asked for, or, unless
 * `by_word`, that sum in two (test/rig/oracle_sums.h), which takes a tenth of the time:
 *
 *     step 3   X[k] = sum_n x[n] e^(-2 pi i k n / P1)              k <= P1/2, the last one halved
 *              u[p] = (X[0] + 2 Re sum_k X[k] e^(2 pi i k p / P2)) / P1
 *     step 6   B[d] = sum_q v[q] e^(-2 pi i d q / P2) / N          first <= d < last
 *
 * No subset of lines, no closed forms: some lines go through the sums side by side and the
 * machine's cores share the work, which keeps it to seconds.
 *
 * With `nufft` steps 2 to 6 are the one sum of section 6,
 *
 *     B[d] = (1/N) sum_i x[i] w[i] phi(q_i) e^(-2 pi i d q_i / P2)     first <= d < last
 *
 * where q_i is camera sample i on the P2 steps in k, w[i] = |dq/di| by central differences (at both
 * ends by one-sided ones), and phi is linear between the entries of a file
 * (test/rig/oracle_exact.h).
 *
 * Beyond the contract: `cubic` interpolation is the four-point Lagrange polynomial through the
 * nodes (axis[m], u[m]), m = l-1 .. l+2, where l is the interval of the linear case and axis is
 * lambda (or s of a k map) with its real, unequal spacing; at both ends the four nodes are shifted
 * inward so that they stay within 0 .. P2-1. Windows are those of pipeline/plan/window.h, with the
 * whole Gaussian. Percentiles, their smoothing and hi <= lo (every
 * pixel 0) are as pipeline/plan/plan.h's struct oct_display says. */
#ifndef OCT_TEST_RIG_ORACLE_H
#define OCT_TEST_RIG_ORACLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum oct_oracle_dc {
    OCT_ORACLE_DC_BSCAN,
    OCT_ORACLE_DC_FILE,
    OCT_ORACLE_DC_NONE,
    OCT_ORACLE_DC_RUNNING /* the mean over the lines that came of this and of `before` */
};
enum oct_oracle_window {
    OCT_ORACLE_NO_WINDOW,
    OCT_ORACLE_HANN,
    OCT_ORACLE_HAMMING,
    OCT_ORACLE_BLACKMAN,
    OCT_ORACLE_GAUSS
};
enum oct_oracle_mode { OCT_ORACLE_AUTO, OCT_ORACLE_MANUAL, OCT_ORACLE_PERCENTILE };

/* Arrays belong to the caller. Exactly one of wavelengths_nm and kmap_px is not NULL. */
struct oct_oracle_setup {
    size_t n_samples, n_lines;    /* N, M */
    size_t crop_first, crop_last; /* crop_last 0: P2 / 2 */
    enum oct_oracle_dc dc;
    const double *background;    /* [N], with OCT_ORACLE_DC_FILE; the source of a window, or NULL */
    const uint16_t *before;      /* [n_before][M][N], with OCT_ORACLE_DC_RUNNING */
    const uint8_t *before_valid; /* [n_before][M] */
    size_t n_before;
    const double *wavelengths_nm; /* [n_wavelengths], N or P2 of them */
    size_t n_wavelengths;
    const double *kmap_px; /* [n_kmap] */
    size_t n_kmap;
    const double *dispersion; /* [P2][2] re, im; NULL: the coefficients */
    double coefficient[6];    /* [m] = a_m, m = 2 .. 5 */
    bool over_spectrum;       /* t is -1 at camera sample 0 and 1 at N-1, else over the P2 steps */
    bool cubic;
    bool nufft;   /* the exact sum */
    bool by_word; /* steps 3 and 6 as they are written */
    enum oct_oracle_window window;
    double window_width; /* of the Gaussian */
    bool flatten;        /* `flat`: without a window */
};

struct oct_oracle_range {
    bool log;
    enum oct_oracle_mode mode;
    double lo, hi; /* manual */
    double percentile_lo, percentile_hi;
    double smoothing_bscans;
};

/* The percentile limits' memory; all zero before the first B-scan. */
struct oct_oracle_memory {
    bool begun;
    uint32_t acquisition;
    uint64_t volume;
    double lo, hi;
};

/* P2 and D of a setup. */
size_t oct_oracle_upsampled(const struct oct_oracle_setup *setup);
size_t oct_oracle_depth(const struct oct_oracle_setup *setup);

/* Steps 1 to 7: spectra [M][N], line_valid [M] (0: missing), b [M][D][2], re, im in counts. False
 * when out of memory. Starts and joins its own threads. */
bool oct_oracle_complex(const struct oct_oracle_setup *setup, const uint16_t *spectra,
                        const uint8_t *line_valid, double *b);

/* And step 8: intensity [M][D], counts^2. */
bool oct_oracle_intensity(const struct oct_oracle_setup *setup, const uint16_t *spectra,
                          const uint8_t *line_valid, double *intensity);

/* Step 8's log: 10*log10(max(I, 1e-12)). */
double oct_oracle_db(double intensity);

/* A B-scan's values, [M][D]: dB when the range says log, else counts^2. */
struct oct_oracle_values {
    const double *values;
    const uint8_t *line_valid; /* [M] */
    size_t n_lines, depth;
    uint32_t acquisition;
    uint64_t volume;
};

/* Step 9's limits of a B-scan, of its lines that came; of one without lines: nothing. False when
 * out of memory. */
bool oct_oracle_limits(const struct oct_oracle_range *range, const struct oct_oracle_values *bscan,
                       struct oct_oracle_memory *memory, double *lo, double *hi);

/* Step 9 before rounding, clamped to 0..255. The u8 pixel is this rounded to nearest. */
double oct_oracle_pixel(double value, double lo, double hi);

#endif
