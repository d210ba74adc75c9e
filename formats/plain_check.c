#include "formats/plain_check.h"

#include "pipeline/base/file_at.h"
#include "pipeline/ingest/sample_look.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW_BYTES ((uint64_t)OCT_PLAIN_WINDOW_SAMPLES * sizeof(uint16_t))
#define FEWEST 64u   /* fewer samples prove nothing */
#define NEARLY 0.995 /* of all: an unnamed header or a marker in a line may differ */
#define N_BINS 16u   /* of a lower half, by its upper four bits */
#define EVENLY 0.02  /* of the lower halves in the emptiest bin; 1/16 when they are noise */
#define SMOOTHER 4.0 /* times, with the bytes swapped: measured real spectra lie at or below 1 */

/* ---- numbers of another type ---- */

/* A layout of 4- or 8-byte numbers in bytes that were taken for u16. */
struct lay {
    size_t first_byte; /* of the first number: an unnamed header may end anywhere */
    size_t n_words;    /* of 16 bits in one */
    bool words_turn;   /* the upper word is stored first */
    bool bytes_turn;   /* within a word; with words_turn: big-endian */
};

static uint16_t swapped(uint16_t sample)
{
    return (uint16_t)(sample >> 8 | sample << 8);
}

/* Word w of number i, 0 the lowest. */
static uint16_t word_at(const void *bytes, const struct lay *lay, size_t i, size_t w)
{
    uint16_t word;
    size_t place = i * lay->n_words + (lay->words_turn ? lay->n_words - 1 - w : w);
    memcpy(&word, (const char *)bytes + lay->first_byte + place * sizeof(word), sizeof(word));
    return lay->bytes_turn ? swapped(word) : word;
}

static double number_at(const void *bytes, const struct lay *lay, size_t i)
{
    float f32;
    double f64;
    uint64_t bits = 0;
    for (size_t w = lay->n_words; w-- > 0;)
        bits = bits << 16 | word_at(bytes, lay, i, w);
    if (lay->n_words == 2) {
        const uint32_t lower = (uint32_t)bits;
        memcpy(&f32, &lower, sizeof(f32));
        return (double)f32;
    }
    memcpy(&f64, &bits, sizeof(f64));
    return f64;
}

/* Lets sample_look.h judge the numbers, in its order of words. */
static bool halves_differ(const void *bytes, const struct lay *lay, size_t total)
{
    uint16_t *words = total ? malloc(total * lay->n_words * sizeof(*words)) : NULL;
    if (!words)
        return false;
    for (size_t i = 0; i < total; i++)
        for (size_t w = 0; w < lay->n_words; w++)
            words[i * lay->n_words + w] = word_at(bytes, lay, i, w);
    bool differ = oct_samples_halves_differ(words, total, lay->n_words, false);
    free(words);
    return differ;
}

/* Whether the numbers are floats as labs store them: counts or shares of full scale, with or
 * without a sign. Nearly all must be 0 or of such a size, half of them not 0. Their lower halves
 * distinguish them from samples that look alike by chance: either the numbers are whole, which
 * pairs of samples of a spectrum are not, or the lower halves are spread over all 65536 values
 * while the upper halves have few values, those of an exponent. */
static bool looks_like_floats(const void *bytes, const struct lay *lay, size_t total)
{
    const double most_odd = (1 - NEARLY) * (double)total;
    size_t n_odd = 0, n_nonzero = 0, n_whole = 0, bins[N_BINS] = {0};

    for (size_t i = 0; i < total; i++) {
        double value = number_at(bytes, lay, i), size = fabs(value);
        bool nonzero = size > 0;
        if (!isfinite(value) || (nonzero && (size < 0x1p-24 || size > 0x1p17))) {
            if ((double)++n_odd > most_odd)
                return false;
            continue;
        }
        n_nonzero += nonzero;
        n_whole += nonzero && !(fabs(value - nearbyint(value)) > 0);
        bins[word_at(bytes, lay, i, 0) >> 12]++;
    }
    if (2 * n_nonzero < total || !halves_differ(bytes, lay, total))
        return false;
    size_t emptiest = bins[0];
    for (size_t b = 1; b < N_BINS; b++)
        emptiest = bins[b] < emptiest ? bins[b] : emptiest;
    return (double)n_whole >= NEARLY * (double)n_nonzero ||
           (double)emptiest >= EVENLY * (double)total;
}

/* Whether the numbers are integers of 32 bits or more that hold counts: one half of each is 0 or
 * sign bits, with few exceptions, and the other half is a sample. No spectrum has a dark pixel
 * beside each lit one. */
static bool looks_like_integers(const void *bytes, const struct lay *lay, size_t total)
{
    size_t n_zero = 0, n_sign = 0, n_lit = 0;
    uint16_t least = UINT16_MAX, most = 0;
    for (size_t i = 0; i < total; i++) {
        uint16_t upper = word_at(bytes, lay, i, 1), lower = word_at(bytes, lay, i, 0);
        n_zero += upper == 0;
        n_sign += upper == UINT16_MAX;
        n_lit += lower != 0;
        least = lower < least ? lower : least;
        most = lower > most ? lower : most;
    }
    return n_zero > 0 && (double)(n_zero + n_sign) >= NEARLY * (double)total &&
           4 * n_lit >= total && most > least;
}

/* Tries every layout of such numbers in n samples. */
static bool any_lay(const uint16_t *samples, size_t n, size_t n_words,
                    bool (*looks)(const void *, const struct lay *, size_t))
{
    const size_t n_bytes = n_words * sizeof(uint16_t);
    for (unsigned turn = 0; turn < 4; turn++)
        for (size_t first = 0; first < n_bytes; first++) {
            const struct lay lay = {first, n_words, turn & 1, turn & 2};
            if (looks(samples, &lay, (n * sizeof(*samples) - first) / n_bytes))
                return true;
        }
    return false;
}

/* ---- byte order ---- */

/* Mean step between neighbours over the mean distance from the mean: small for spectra, 4/3 for
 * noise, whatever their scale. 0: all are equal. */
static double roughness(const uint16_t *samples, size_t n, bool swap)
{
    double sum = 0, steps = 0, spread = 0;
    for (size_t i = 0; i < n; i++)
        sum += swap ? swapped(samples[i]) : samples[i];
    for (size_t i = 0; i < n; i++) {
        double a = swap ? swapped(samples[i]) : samples[i];
        spread += fabs(a - sum / (double)n);
        if (i + 1 < n)
            steps += fabs((swap ? swapped(samples[i + 1]) : samples[i + 1]) - a);
    }
    return spread > 0 ? steps / spread : 0;
}

static bool looks_swapped(const uint16_t *samples, size_t n)
{
    double as_is = roughness(samples, n, false), other = roughness(samples, n, true);
    return as_is > 0 && other > 0 && as_is > SMOOTHER * other;
}

/* ---- both ---- */

enum oct_plain_look oct_plain_judge(const uint16_t *samples, size_t n, unsigned bits, size_t *at)
{
    *at = 0;
    if (n >= FEWEST && any_lay(samples, n, 2, looks_like_floats))
        return OCT_PLAIN_FLOAT32;
    if (n >= FEWEST && any_lay(samples, n, 4, looks_like_floats))
        return OCT_PLAIN_FLOAT64;
    if (n >= FEWEST && any_lay(samples, n, 2, looks_like_integers))
        return OCT_PLAIN_INTEGERS;
    if (n >= FEWEST && looks_swapped(samples, n))
        return OCT_PLAIN_SWAPPED;
    for (size_t i = 0; i < n; i++)
        if (samples[i] >> bits) {
            *at = i;
            return OCT_PLAIN_TOO_LARGE;
        }
    return OCT_PLAIN_SAMPLES;
}

static enum oct_err refuse(enum oct_plain_look look, const char *path, uint64_t byte,
                           uint16_t sample, unsigned bits, struct oct_error *err)
{
    static const char insist[] = "; if it is u16 all the same, set file.check_samples=no";
    const char *type = look == OCT_PLAIN_FLOAT32 ? "f32" : "f64";
    switch (look) {
    case OCT_PLAIN_FLOAT32:
    case OCT_PLAIN_FLOAT64:
        return oct_fail(err, OCT_E_FORMAT,
                        "%s: from byte %" PRIu64 " on it looks like %d-bit floats, not like u16 "
                        "camera samples: file.sample=%s reads them (%sbe: big-endian)%s",
                        path, byte, look == OCT_PLAIN_FLOAT32 ? 32 : 64, type, type, insist);
    case OCT_PLAIN_INTEGERS:
        return oct_fail(err, OCT_E_FORMAT,
                        "%s: from byte %" PRIu64 " on every second 16-bit word is 0 or a sign: it "
                        "looks like integers of 32 bits or more, not like u16 camera samples: "
                        "file.sample=i32 or u32 reads those of 32 (i32be: big-endian)%s",
                        path, byte, insist);
    case OCT_PLAIN_SWAPPED:
        return oct_fail(err, OCT_E_FORMAT,
                        "%s: from byte %" PRIu64 " on the two bytes of each sample look swapped "
                        "(big-endian, or file.header_bytes is odd): file.sample=u16be reads "
                        "them%s",
                        path, byte, insist);
    case OCT_PLAIN_TOO_LARGE:
        return oct_fail(err, OCT_E_FORMAT,
                        "%s: the sample at byte %" PRIu64
                        " is %u, but camera.bits = %u ends at %u: "
                        "correct camera.bits or file.header_bytes, or name another type by "
                        "file.sample%s",
                        path, byte, sample, bits, (1u << bits) - 1, insist);
    case OCT_PLAIN_SAMPLES:
        break;
    }
    return OCT_OK;
}

/* Reads what the file has and zeroes the rest; the recording's reader reports a file that was
 * truncated meanwhile. */
static enum oct_err read_window(int fd, const char *path, uint64_t at, void *into, size_t n_bytes,
                                struct oct_error *err)
{
    memset(into, 0, n_bytes);
    if (oct_file_read_at(fd, into, n_bytes, at) < 0)
        return oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot read at byte %" PRIu64, path, at);
    return OCT_OK;
}

/* Where window w begins: the whole payload in one piece if it is not longer than all of them. */
static uint64_t window_at(uint64_t payload_bytes, unsigned w)
{
    if (payload_bytes <= OCT_PLAIN_WINDOWS * WINDOW_BYTES)
        return w * WINDOW_BYTES;
    return (payload_bytes - WINDOW_BYTES) / (OCT_PLAIN_WINDOWS - 1) * w / 8 * 8;
}

enum oct_err oct_plain_check(int fd, const char *path, uint64_t first_byte, uint64_t payload_bytes,
                             unsigned bits, struct oct_error *err)
{
    const uint64_t most = OCT_PLAIN_WINDOWS * WINDOW_BYTES;
    const uint64_t n_bytes = payload_bytes < most ? payload_bytes : most;
    enum oct_err code = OCT_OK;
    uint16_t *samples = calloc(OCT_PLAIN_WINDOWS, WINDOW_BYTES);
    if (!samples)
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", path);
    for (unsigned w = 0; code == OCT_OK && w * WINDOW_BYTES < n_bytes; w++) {
        uint64_t left = n_bytes - w * WINDOW_BYTES;
        code = read_window(fd, path, first_byte + window_at(payload_bytes, w),
                           samples + (size_t)w * OCT_PLAIN_WINDOW_SAMPLES,
                           left < WINDOW_BYTES ? left : WINDOW_BYTES, err);
    }
    if (code == OCT_OK) {
        size_t at;
        enum oct_plain_look look = oct_plain_judge(samples, n_bytes / sizeof(uint16_t), bits, &at);
        uint64_t byte = first_byte + window_at(payload_bytes, (unsigned)(at * 2 / WINDOW_BYTES)) +
                        at * 2 % WINDOW_BYTES;
        code = refuse(look, path, byte, samples[at], bits, err);
    }
    free(samples);
    return code;
}
