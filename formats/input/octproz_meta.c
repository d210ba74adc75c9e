#include "formats/input/octproz_meta.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VIRTUAL_SYSTEM "Virtual OCT System"

/* ---- lines of an ini file ---- */

struct line {
    const char *text;
    size_t n;
};

static struct line trim(struct line line)
{
    while (line.n > 0 && strchr(" \t\r", line.text[0])) {
        line.text++;
        line.n--;
    }
    while (line.n > 0 && strchr(" \t\r", line.text[line.n - 1]))
        line.n--;
    return line;
}

static bool next_line(struct line *rest, struct line *line)
{
    if (rest->n == 0)
        return false;
    const char *end = memchr(rest->text, '\n', rest->n);
    const size_t n = end ? (size_t)(end - rest->text) : rest->n;
    *line = trim((struct line){rest->text, n});
    rest->n -= end ? n + 1 : n;
    rest->text += end ? n + 1 : n;
    return true;
}

static bool is(struct line line, const char *text)
{
    return line.n == strlen(text) && memcmp(line.text, text, line.n) == 0;
}

static bool split(struct line line, struct line *key, struct line *value)
{
    const char *equals = memchr(line.text, '=', line.n);
    if (!equals)
        return false;
    const size_t n = (size_t)(equals - line.text);
    *key = trim((struct line){line.text, n});
    *value = trim((struct line){equals + 1, line.n - n - 1});
    return true;
}

static int hex(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                  : -1;
}

/* QSettings writes what is no letter, digit, _, - or . of a section's name as %20, ... */
static void plain_name(struct line line, char *name, size_t bytes)
{
    size_t n = 0;
    for (size_t i = 0; i < line.n && n + 1 < bytes; i++) {
        const int high = line.text[i] == '%' && i + 2 < line.n ? hex(line.text[i + 1]) : -1;
        const int low = high >= 0 ? hex(line.text[i + 2]) : -1;
        name[n++] = low >= 0 ? (char)(high * 16 + low) : line.text[i];
        i += low >= 0 ? 2 : 0;
    }
    name[n] = '\0';
}

/* A value, without the quotes that QSettings puts around some. */
static void plain_value(struct line line, char *text, size_t bytes)
{
    if (line.n >= 2 && line.text[0] == '"' && line.text[line.n - 1] == '"')
        line = (struct line){line.text + 1, line.n - 2};
    const size_t n = line.n < bytes ? line.n : bytes - 1;
    memcpy(text, line.text, n);
    text[n] = '\0';
}

/* ---- settings ---- */

static uint64_t count_of(struct line value)
{
    char text[24], *end;
    plain_value(value, text, sizeof(text));
    if (text[0] < '0' || text[0] > '9')
        return 0;
    const unsigned long long count = strtoull(text, &end, 10);
    return *end || count > UINT32_MAX ? 0 : count;
}

static double number_of(struct line value)
{
    char text[40], *end;
    plain_value(value, text, sizeof(text));
    const double number = strtod(text, &end);
    return end == text || *end || !isfinite(number) ? NAN : number;
}

static void take_processing(struct oct_octproz_meta *meta, struct line key, struct line value)
{
    const bool yes = is(value, "true");
    if (is(key, "resampling"))
        meta->is_resampled = yes;
    else if (is(key, "custom_resampling"))
        meta->is_resampled_by_file = yes;
    else if (is(key, "dispersion_compensation"))
        meta->is_dispersed = yes;
    for (int i = 0; i < 4; i++) {
        char name[40];
        snprintf(name, sizeof(name), "resampling_c%d", i);
        if (is(key, name))
            meta->resampling[i] = number_of(value);
        snprintf(name, sizeof(name), "dispersion_compensation_d%d", i);
        if (is(key, name))
            meta->dispersion[i] = number_of(value);
    }
}

static void take_system(struct oct_octproz_meta *meta, struct line key, struct line value)
{
    if (is(key, "bit_depth"))
        meta->bits = count_of(value);
    else if (is(key, "width"))
        meta->n_samples = count_of(value);
    else if (is(key, "height"))
        meta->n_lines = count_of(value);
    else if (is(key, "depth"))
        meta->n_bscans = count_of(value);
}

static void find_system(struct oct_octproz_meta *meta, struct line rest)
{
    struct line line, key, value;
    snprintf(meta->system, sizeof(meta->system), "%s", VIRTUAL_SYSTEM);
    while (next_line(&rest, &line))
        if (split(line, &key, &value) && is(key, "main_active_system") && value.n > 0)
            plain_value(value, meta->system, sizeof(meta->system));
}

void oct_octproz_meta_read(struct oct_octproz_meta *meta, const char *text, size_t n_bytes)
{
    struct line rest = {text, n_bytes}, line, key, value;
    char section[64] = "";
    *meta = (struct oct_octproz_meta){.is_octproz = false};
    find_system(meta, rest);
    while (next_line(&rest, &line)) {
        if (line.n >= 2 && line.text[0] == '[' && line.text[line.n - 1] == ']') {
            plain_name((struct line){line.text + 1, line.n - 2}, section, sizeof(section));
            continue;
        }
        if (line.n == 0 || line.text[0] == ';' || !split(line, &key, &value))
            continue;
        if (strcmp(section, "processing") == 0) {
            meta->is_octproz = true;
            take_processing(meta, key, value);
        } else if (strcmp(section, meta->system) == 0) {
            take_system(meta, key, value);
        }
    }
}

/* ---- calibration ---- */

static double polynomial(const double c[4], double x)
{
    return c[0] + x * (c[1] + x * (c[2] + x * c[3]));
}

/* The place on the map's axis, 0 to 1 over its entries, of camera coordinate c: between two entries
 * or, with the slope of the end, beyond. The map rises or falls strictly. */
static double place_of(const double *kmap, uint32_t n, double c)
{
    const bool rises = kmap[1] > kmap[0];
    uint32_t low = 0, high = n - 2; /* of the pair low, low + 1 */
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (rises ? c <= kmap[middle + 1] : c >= kmap[middle + 1])
            high = middle;
        else
            low = middle + 1;
    }
    return (low + (c - kmap[low]) / (kmap[low + 1] - kmap[low])) / (n - 1);
}

static bool is_monotonic(const double *kmap, uint32_t n)
{
    for (uint32_t j = 1; j < n; j++) /* n is 2 at least */
        if (!((kmap[j] - kmap[j - 1]) * (kmap[1] - kmap[0]) > 0))
            return false;
    return true;
}

/* OCTproZ multiplies real spectra by exp(+i phase) and transforms back, octd by exp(-i theta) and
 * forward: conjugates of each other, of equal magnitude for theta = phase.
 *     x = middle + half t, t -1 to 1 over the camera's samples, x 0 to 1 over the map's entries */
static void fill_dispersion(struct oct_calibration *cal, const double d[4], double middle,
                            double half)
{
    cal->dispersion_over = OCT_DISPERSION_OVER_SPECTRUM;
    cal->coefficient[2] = half * half * (d[2] + 3 * d[3] * middle);
    cal->coefficient[3] = half * half * half * d[3];
}

static bool are_finite(const double c[4])
{
    return isfinite(c[0]) && isfinite(c[1]) && isfinite(c[2]) && isfinite(c[3]);
}

enum oct_err oct_octproz_meta_calibration(const struct oct_octproz_meta *meta, uint32_t n_samples,
                                          struct oct_calibration *cal, struct oct_error *err)
{
    const uint32_t n = n_samples;
    double first = 0, last = 1;
    if (meta->is_resampled && !meta->is_resampled_by_file && are_finite(meta->resampling)) {
        cal->kmap_px = calloc(n, sizeof(*cal->kmap_px));
        if (!cal->kmap_px)
            return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a k map of %u values", n);
        cal->n_kmap = n;
        for (uint32_t j = 0; j < n; j++)
            cal->kmap_px[j] = polynomial(meta->resampling, (double)j / (n - 1));
        if (is_monotonic(cal->kmap_px, n)) { /* else the plan names the entry that turns */
            first = place_of(cal->kmap_px, n, 0);
            last = place_of(cal->kmap_px, n, n - 1);
        }
    }
    if (meta->is_dispersed && are_finite(meta->dispersion))
        fill_dispersion(cal, meta->dispersion, (first + last) / 2, (last - first) / 2);
    return OCT_OK;
}
