/* A mirror in a B-scan: the axial peak (analysis/calibrate/peak.h) of its A-lines, and whether what
 * is there is a mirror at all.
 *
 * Input: values [M][D] f32, dB or counts^2. Up to 8 groups of neighbouring A-lines are averaged as
 * intensities and searched one by one; each number is the median over the groups that have the
 * peak. So a mirror that stands askew to the scan is no wider, and tilt_px says how much it is.
 * A-lines that are missing (-120 dB or 0 throughout) or hold values that are no numbers are left
 * out.
 *
 * Where the mean of A-lines is taken away (pipeline.dc = bscan, running), so is a mirror that
 * stands still. Pure; any thread. */
#ifndef OCT_ANALYSIS_ROLLOFF_MIRROR_H
#define OCT_ANALYSIS_ROLLOFF_MIRROR_H

#include <stdbool.h>
#include <stdint.h>

enum oct_mirror_state {
    OCT_MIRROR_FOUND,
    OCT_MIRROR_WEAK,     /* nothing stands out of the noise */
    OCT_MIRROR_AT_END,   /* the peak is cut off by the first or the last depth */
    OCT_MIRROR_MANY,     /* one line holds less than half of the intensity: tissue, two mirrors */
    OCT_MIRROR_HARMONIC, /* the next line lies two or three times as deep: a saturated camera */
    OCT_MIRROR_MISSING,  /* fewer than half of the A-lines came, or are numbers */
    OCT_MIRROR_N_STATES
};

/* "mirror", "weak", "at_end", "many", "harmonic", "missing". */
extern const char *const oct_mirror_state_names[OCT_MIRROR_N_STATES];

struct oct_mirror_setup {
    uint32_t n_lines, depth; /* M, D */
    bool is_db;
    uint32_t first_px;   /* pixels before it are not looked at: DC */
    uint32_t crop_first; /* pixels between zero delay and the first one */
    double min_snr_db;
};

struct oct_mirror {
    enum oct_mirror_state state; /* all that follows is NaN unless FOUND */
    double depth_px;             /* 0: the middle of the first pixel given */
    double peak_db, noise_db;    /* dB of counts^2; the mean power of the noise in one A-line */
    double fwhm_px;              /* at half the intensity */
    double snr_db;
    double side_lobe_db, side_lobe_px; /* relative to the peak; NaN: none above the noise */
    double dynamic_range_db;
    double tilt_px; /* deepest group less shallowest */
};

/* sums: [D] room; line: [D] room. */
void oct_mirror_measure(struct oct_mirror *mirror, const struct oct_mirror_setup *setup,
                        const float *values, double *sums, float *line);

#endif
