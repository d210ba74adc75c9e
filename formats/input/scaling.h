/* Samples of any type as the u16 that the chain takes:
 *
 *     u16 = round(value * scale + offset)
 *
 *     u8, u16                 as they are
 *     i8, i16                 value + 128, value + 32768: offset binary, as converters give it. The
 *                             offset is the same in every sample, so that it goes with the DC
 *     u32, i32, f32, f64      whole numbers of 0 to 65535 as they are; of -32768 to 32767 as i16;
 *                             else by the file's range: its least value is 0, its largest 65535
 *
 * Or as the user says (file.scale, file.offset). A value that is no number, or is not within u16
 * then, is an error: nothing is cut off. So is a range of which the magnitude that half of the
 * values
 * lie above (zeros apart) is no step of 65535: one wrong value would make all others the same. Any
 * thread. */
#ifndef OCT_FORMATS_INPUT_SCALING_H
#define OCT_FORMATS_INPUT_SCALING_H

#include "formats/input/input.h"
#include "formats/input/sample.h"

#define OCT_SCALING_MAGNITUDES 2098 /* exponents of doubles, -1074 to 1023 */

struct oct_scaling {
    struct oct_sample_kind kind;
    double scale, offset;
    bool needs_range; /* `look` at all values and `settle` come first */
    bool is_as_is;    /* u16 in the order of this machine: a copy */
    /* What was looked at. */
    double least, most;
    bool is_whole, is_finite;
    uint64_t
        n_of[OCT_SCALING_MAGNITUDES]; /* values of 2^(i - 1074) and above, below 2^(i - 1073) */
};

void oct_scaling_init(struct oct_scaling *scaling, const struct oct_sample_kind *kind,
                      const struct oct_input_wish *wish);

void oct_scaling_look(struct oct_scaling *scaling, const void *values, size_t n);

/* OCT_E_FORMAT: values that are no numbers, all alike, or so far apart. */
enum oct_err oct_scaling_settle(struct oct_scaling *scaling, const char *name,
                                struct oct_error *err);

/* n values into samples; the index of the first that does not fit, n: all do. Both may be the same
 * memory where a value has 2 bytes. */
size_t oct_scaling_apply(const struct oct_scaling *scaling, const void *values, size_t n,
                         uint16_t *samples);

/* OCT_E_FORMAT, of values[at], which apply refused in B-scan i. */
enum oct_err oct_scaling_refuse(const struct oct_scaling *scaling, const char *name, uint64_t i,
                                const void *values, size_t at, struct oct_error *err);

/* For the facts. *bits: of a sample then. */
void oct_scaling_tell(const struct oct_scaling *scaling, char *text, size_t text_bytes,
                      unsigned *bits);

#endif
