#include "formats/input/scaling.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "little-endian samples are read into memory as they lie in the file"
#endif

#define LEAST 0.0
#define MOST 65535.0

static bool is_kind(const struct oct_scaling *s, char kind, unsigned bytes)
{
    return s->kind.kind == kind && s->kind.bytes == bytes;
}

void oct_scaling_init(struct oct_scaling *s, const struct oct_sample_kind *kind,
                      const struct oct_input_wish *wish)
{
    *s = (struct oct_scaling){.kind = *kind,
                              .scale = 1,
                              .least = INFINITY,
                              .most = -INFINITY,
                              .is_whole = true,
                              .is_finite = true};
    if (wish->is_scaled) {
        s->scale = wish->scale;
        s->offset = wish->offset;
        return;
    }
    if (kind->kind == 'i' && kind->bytes <= 2)
        s->offset = kind->bytes == 1 ? 128 : 32768;
    s->needs_range = kind->bytes > 2;
    s->is_as_is = is_kind(s, 'u', 2) && !kind->big_endian;
}

static double value_at(const struct oct_scaling *s, const void *values, size_t i)
{
    return oct_sample_decode(&s->kind, (const unsigned char *)values + i * s->kind.bytes);
}

/* ---- the range ---- */

static void note_range(struct oct_scaling *s, double least, double most, bool is_whole)
{
    s->least = least < s->least ? least : s->least;
    s->most = most > s->most ? most : s->most;
    s->is_whole = s->is_whole && is_whole;
}

void oct_scaling_look(struct oct_scaling *s, const void *values, size_t n)
{
    double least = INFINITY, most = -INFINITY;
    bool is_whole = true;
    for (size_t i = 0; i < n; i++) {
        const double value = value_at(s, values, i);
        if (!isfinite(value)) {
            s->is_finite = false;
            return;
        }
        if (fabs(value) > 0)
            s->n_of[ilogb(value) + 1074]++;
        least = value < least ? value : least;
        most = value > most ? value : most;
        is_whole = is_whole && !(fabs(value - nearbyint(value)) > 0);
    }
    if (n > 0)
        note_range(s, least, most, is_whole);
}

/* A power of two below half of the values that are not 0; 0: there are none. */
static double median_magnitude(const struct oct_scaling *s)
{
    uint64_t n = 0, below = 0;
    for (int i = 0; i < OCT_SCALING_MAGNITUDES; i++)
        n += s->n_of[i];
    for (int i = 0; n > 0 && i < OCT_SCALING_MAGNITUDES; i++)
        if ((below += s->n_of[i]) > n / 2)
            return ldexp(1, i - 1074);
    return 0;
}

static enum oct_err check_range(const struct oct_scaling *s, const char *name,
                                struct oct_error *err)
{
    const double median = median_magnitude(s), far = fmax(fabs(s->least), fabs(s->most));
    if (!(s->scale * 2 * median < 1))
        return OCT_OK;
    return oct_fail(err, OCT_E_FORMAT,
                    "%s: has a value of %g, while half of them are below %g: by that range these "
                    "would all become one number: replace it, or set file.scale and file.offset",
                    name, far == fabs(s->most) ? s->most : s->least, 2 * median);
}

enum oct_err oct_scaling_settle(struct oct_scaling *s, const char *name, struct oct_error *err)
{
    if (!s->is_finite)
        return oct_fail(err, OCT_E_FORMAT,
                        "%s: has values that are no numbers (NaN or infinite): replace them", name);
    s->needs_range = false;
    if (s->is_whole && s->least >= LEAST && s->most <= MOST)
        return OCT_OK;
    if (s->is_whole && s->least >= INT16_MIN && s->most <= INT16_MAX) {
        s->offset = 32768;
        return OCT_OK;
    }
    if (!(s->most > s->least))
        return oct_fail(err, OCT_E_FORMAT, "%s: all its values are %g: no spectra", name, s->least);
    s->scale = MOST / (s->most - s->least);
    s->offset = -s->least * s->scale;
    if (!(isfinite(s->scale) && s->scale > 0 && isfinite(s->offset)))
        return oct_fail(err, OCT_E_FORMAT,
                        "%s: its values run from %g to %g, which no scale maps to u16: set "
                        "file.scale and file.offset",
                        name, s->least, s->most);
    return check_range(s, name, err);
}

/* ---- the samples ---- */

static uint16_t swapped(uint16_t sample)
{
    return (uint16_t)(sample >> 8 | sample << 8);
}

/* Words of two bytes: swapped if they are big-endian; u16 + 32768 and i16 + 32768 change the
 * uppermost bit alone. */
static void copy_words(const struct oct_scaling *s, const void *values, size_t n, uint16_t *samples)
{
    const uint16_t flip = s->kind.kind == 'i' ? 0x8000 : 0;
    memmove(samples, values, n * sizeof(*samples));
    if (s->kind.big_endian)
        for (size_t i = 0; i < n; i++)
            samples[i] = swapped(samples[i]) ^ flip;
    else if (flip)
        for (size_t i = 0; i < n; i++)
            samples[i] ^= flip;
}

/* Whether it fits; NaN does not. */
static bool fits(double scaled)
{
    return scaled > LEAST - 0.5 && scaled < MOST + 0.5;
}

static size_t convert(const struct oct_scaling *s, const void *values, size_t n, uint16_t *samples)
{
    for (size_t i = 0; i < n; i++) {
        const double scaled = value_at(s, values, i) * s->scale + s->offset;
        if (!fits(scaled))
            return i;
        samples[i] = (uint16_t)lrint(scaled < LEAST ? LEAST : scaled);
    }
    return n;
}

/* The same of f32 in the order of this machine, in pieces that become vector code. */
static size_t convert_f32(const struct oct_scaling *s, const float *values, size_t n,
                          uint16_t *samples)
{
    enum { PIECE = 256 };
    for (size_t at = 0; at < n; at += PIECE) {
        const size_t end = at + PIECE < n ? at + PIECE : n;
        unsigned n_bad = 0;
        for (size_t i = at; i < end; i++) {
            const double scaled = (double)values[i] * s->scale + s->offset;
            n_bad += !fits(scaled);
        }
        if (n_bad)
            return at + convert(s, values + at, end - at, samples + at);
        for (size_t i = at; i < end; i++)
            samples[i] = (uint16_t)(int32_t)nearbyint((double)values[i] * s->scale + s->offset);
    }
    return n;
}

size_t oct_scaling_apply(const struct oct_scaling *s, const void *values, size_t n,
                         uint16_t *samples)
{
    const bool is_plain = !(fabs(s->scale - 1) > 0);
    const bool is_u16 = is_kind(s, 'u', 2) && !(fabs(s->offset) > 0);
    const bool is_i16 = is_kind(s, 'i', 2) && !(fabs(s->offset - 32768) > 0);
    if (is_plain && (is_u16 || is_i16)) {
        copy_words(s, values, n, samples);
        return n;
    }
    if (is_kind(s, 'f', 4) && !s->kind.big_endian)
        return convert_f32(s, values, n, samples);
    return convert(s, values, n, samples);
}

/* ---- words ---- */

enum oct_err oct_scaling_refuse(const struct oct_scaling *s, const char *name, uint64_t i,
                                const void *values, size_t at, struct oct_error *err)
{
    const double value = value_at(s, values, at);
    if (!isfinite(value))
        return oct_fail(err, OCT_E_FORMAT,
                        "%s: B-scan %" PRIu64 " has a value that is no number: replace it", name,
                        i);
    return oct_fail(err, OCT_E_FORMAT,
                    "%s: B-scan %" PRIu64 " has a value of %g, which becomes %g, beyond 0 to "
                    "65535: correct file.scale and file.offset",
                    name, i, value, value * s->scale + s->offset);
}

void oct_scaling_tell(const struct oct_scaling *s, char *text, size_t text_bytes, unsigned *bits)
{
    const bool is_scaled = fabs(s->scale - 1) > 0, is_moved = fabs(s->offset) > 0;
    *bits = s->kind.bytes == 1 && !is_scaled ? 8 : is_scaled || is_moved ? 16 : 0;
    if (is_scaled)
        snprintf(text, text_bytes, "value * %.9g %c %.9g", s->scale, s->offset < 0 ? '-' : '+',
                 fabs(s->offset));
    else if (is_moved)
        snprintf(text, text_bytes, "value %c %.9g", s->offset < 0 ? '-' : '+', fabs(s->offset));
    else
        text[0] = '\0';
}
