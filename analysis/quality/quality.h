/* How good the pictures are, B-scan by B-scan: signal to noise, sharpness, blinks and motion.
 *
 * Input: pictures, as they are shown. Result: one row of labelled numbers a B-scan, f32:
 *   snr_db       the 99.5th percentile of the pixels over the 25th, in dB. An 8-bit picture was cut
 *                off at its published limits; noise below them counts as the limit
 *   sharpness    <I^2> / <I>^2 over the intensities I (Muller and Buffington 1974, S1); 1 is a
 *                uniform grey, more is better. It compares pictures of one eye, not of two
 *   snr_smooth_db, sharpness_smooth    the same, smoothed over some five B-scans
 *   level_db     of the signal to noise, over some hundred B-scans, blinks left out
 *   blink        1: the signal to noise is less than half its level
 *   motion       1: the mean depth profile has moved by more than a fiftieth of the depth since the
 *                B-scan before, of the same volume
 *   missing      1: A-lines of it were missing
 *   blinks, motions    how many began or came since the acquisition began
 * At most 128 A-lines of a B-scan are looked at. */
#ifndef OCT_ANALYSIS_QUALITY_QUALITY_H
#define OCT_ANALYSIS_QUALITY_QUALITY_H

#include "analysis/analysis.h"

enum oct_quality_column {
    OCT_QUALITY_SNR_DB,
    OCT_QUALITY_SHARPNESS,
    OCT_QUALITY_SNR_SMOOTH_DB,
    OCT_QUALITY_SHARPNESS_SMOOTH,
    OCT_QUALITY_LEVEL_DB,
    OCT_QUALITY_BLINK,
    OCT_QUALITY_MOTION,
    OCT_QUALITY_MISSING,
    OCT_QUALITY_BLINKS,
    OCT_QUALITY_MOTIONS,
    OCT_QUALITY_N_COLUMNS
};

extern const struct oct_analysis_ops oct_quality_cpu;

#endif
