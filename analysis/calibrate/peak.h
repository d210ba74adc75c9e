/* The axial peak: the brightest line of one A-line, as a mirror makes it.
 *
 * Input: linear intensities, float [D], counts^2, of one A-line or the mean over several.
 * Between pixels the A-line is a sum over its neighbours, sinc under the window of Blackman and
 * Harris, 32 pixels wide. That is right where the spectrum fills at most 0.4 of the P2 steps, as
 * 832 samples of 2048 do (2.2 px wide if it is flat): widths then are within 0.01 % of those of a
 * curve sampled without end, tops within 0.001 %, depths within 0.001 px; noise comes on top.
 *
 *     top     the largest value of that curve within a pixel of the brightest local maximum
 *     floor   mean power of the noise: the median of the pixels far from the peak, over the median
 *             of the mean of n_lines exponential variables, (1 - 1/(9n))^3 (Wilson and Hilferty)
 *     fwhm    from where the curve falls to floor + (top - floor) / 2 on one side to the other
 *     depth   the middle between those two: of a symmetric peak that is the place of the top, which
 *             noise moves several times more
 *     lobe    from the first local minimum outside the half widths to the first on the other side
 *
 * Source: W. Drexler, J. G. Fujimoto (editors), Optical Coherence Tomography, 2nd edition, 2015,
 * chapters 2 and 4, for the words width, signal to noise and side lobe.
 * Pure; any thread. */
#ifndef OCT_ANALYSIS_CALIBRATE_PEAK_H
#define OCT_ANALYSIS_CALIBRATE_PEAK_H

#include <stdbool.h>
#include <stdint.h>

#define OCT_PEAK_LEAST_DEPTH 64u  /* pixels that an A-line needs */
#define OCT_PEAK_FIRST_PX 8u      /* what remains of DC lies before */
#define OCT_PEAK_MIN_SNR_DB 15.0  /* noise alone reaches 12 dB in a single A-line */
#define OCT_PEAK_MIRROR_SHARE 0.5 /* tissue holds less in one line */

enum oct_peak_state {
    OCT_PEAK_FOUND,
    OCT_PEAK_WEAK,       /* no local maximum above the signal to noise that was asked for */
    OCT_PEAK_AT_END,     /* one side of it lies beyond the A-line */
    OCT_PEAK_NO_NUMBERS, /* a value is NaN, infinite or negative, or there are too few */
};

struct oct_peak_search {
    uint32_t first_px; /* pixels before it are not looked at */
    uint32_t n_lines;  /* independent A-lines that the intensities are a mean of; 0 is 1 */
    double min_snr_db; /* below it there is no peak */
};

/* OCT_PEAK_FIRST_PX, one A-line, OCT_PEAK_MIN_SNR_DB. */
extern const struct oct_peak_search oct_peak_standard;

/* Where the state is not FOUND all is NaN but, if WEAK or AT_END, floor, and top, its place as
 * depth_px, and snr_db of the maximum that is none. */
struct oct_peak {
    enum oct_peak_state state;
    double depth_px; /* 0 is the middle of the first pixel given */
    double top;      /* counts^2 */
    double fwhm_px;
    double left_px, right_px;           /* where the half widths end */
    double lobe_first_px, lobe_last_px; /* where the main lobe ends, to 0.25 px */
    double floor;                       /* counts^2; 0 is possible */
    double snr_db;                      /* top over floor; +infinity over a floor of 0 */
    /* The highest local maximum outside the main lobe, relative to the top (negative), and where.
     * It is noise unless `side_lobe_stands_out` from what noise of n_lines reaches. NaN: none. */
    double side_lobe_db, side_lobe_px;
    bool side_lobe_stands_out;
    double dynamic_range_db; /* top over what a second reflector must exceed to be seen: the side
                                lobe where it stands out, else the floor */
    double share; /* 0..1: what the main lobe holds of the A-line's intensity above the floor, from
                     first_px on; above OCT_PEAK_MIRROR_SHARE it is a single reflector */
};

/* intensity: [depth]. search NULL: the standard one. Returns peak->state. */
enum oct_peak_state oct_peak_find(struct oct_peak *peak, const float *intensity, uint32_t depth,
                                  const struct oct_peak_search *search);

/* "found", "no peak", "at the end of the A-line", "no numbers". */
const char *oct_peak_state_text(enum oct_peak_state state);

#endif
