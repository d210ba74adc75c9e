#include "formats/input/array.h"

#include "formats/input/scaling.h"
#include "pipeline/base/file_at.h"
#include "pipeline/plan/geometry.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_BYTES ((uint64_t)256 << 20) /* of values, where B-scans lie apart */
#define PLANE_BYTES ((uint64_t)64 << 20)  /* read whole, where a part of each row is wanted */
#define TILE 32u
#define MOST_PACKING 2048u /* gzip packs zeros by 1032, and there may be a filter before it */

struct oct_input_array {
    struct oct_input_array_setup setup;
    char *name;
    struct oct_scaling scaling;
    uint64_t block;     /* B-scans */
    bool is_in_order;   /* [V][M][N], a B-scan at a time, straight into the caller's memory */
    uint64_t kept;      /* B-scans kept.. */
    uint64_t n_kept;    /* 0: none */
    void *values;       /* [block] B-scans, as stored */
    uint16_t *unsorted; /* the same as u16 */
    uint16_t *spectra;  /* [block][M][N]; `unsorted` where they are in that order */
    unsigned char *plane;
};

/* ---- the order of axes ---- */

static const enum oct_input_axis orders[][3] = {
    [OCT_INPUT_AS_IS] = {OCT_INPUT_BSCAN, OCT_INPUT_LINE, OCT_INPUT_SAMPLE},
    [OCT_INPUT_TRANSPOSE] = {OCT_INPUT_BSCAN, OCT_INPUT_SAMPLE, OCT_INPUT_LINE},
    [OCT_INPUT_REVERSE] = {OCT_INPUT_SAMPLE, OCT_INPUT_LINE, OCT_INPUT_BSCAN},
};
static const char *const words[] = {"no", "yes", "all"};

/* V, M, N with this order; two axes are A-lines and samples. */
static void extents_of(enum oct_input_transpose transpose, unsigned rank, const uint64_t *extents,
                       uint64_t n[3])
{
    n[OCT_INPUT_BSCAN] = 1;
    if (rank == 3) {
        for (unsigned i = 0; i < 3; i++)
            n[orders[transpose][i]] = extents[i];
        return;
    }
    n[OCT_INPUT_LINE] = extents[transpose == OCT_INPUT_AS_IS ? 0 : 1];
    n[OCT_INPUT_SAMPLE] = extents[transpose == OCT_INPUT_AS_IS ? 1 : 0];
}

/* A file of A-lines alone has B-scans of as many as the user says, in one or several. */
static enum oct_err cut_into_bscans(const char *name, uint64_t n[3],
                                    const struct oct_input_wish *wish, struct oct_error *err)
{
    if (wish->n_lines == 0)
        return OCT_OK;
    if (n[OCT_INPUT_LINE] % wish->n_lines != 0)
        return oct_fail(err, OCT_E_FORMAT,
                        "%s: its %" PRIu64 " A-lines are %.7g B-scans of scan.lines = %" PRIu32
                        ": no whole number of them",
                        name, n[OCT_INPUT_LINE], (double)n[OCT_INPUT_LINE] / wish->n_lines,
                        wish->n_lines);
    n[OCT_INPUT_BSCAN] = n[OCT_INPUT_LINE] / wish->n_lines;
    n[OCT_INPUT_LINE] = wish->n_lines;
    return OCT_OK;
}

static enum oct_err check_wish(const char *name, unsigned rank, const uint64_t *extents,
                               const uint64_t n[3], const struct oct_input_wish *wish,
                               struct oct_error *err)
{
    if (wish->n_samples == 0 || n[OCT_INPUT_SAMPLE] == wish->n_samples)
        return OCT_OK;
    for (unsigned t = 0; t < sizeof(words) / sizeof(words[0]); t++) {
        uint64_t other[3];
        extents_of(t, rank, extents, other);
        if (other[OCT_INPUT_SAMPLE] == wish->n_samples)
            return oct_fail(err, OCT_E_FORMAT,
                            "%s: has A-lines of %" PRIu64 " samples where camera.samples = %" PRIu32
                            ": set file.transpose=%s",
                            name, n[OCT_INPUT_SAMPLE], wish->n_samples, words[t]);
    }
    return OCT_OK; /* the recording says that they differ */
}

enum oct_err oct_input_order_find(struct oct_input_order *order, const char *name, unsigned rank,
                                  const uint64_t *extents, bool is_reversed,
                                  const struct oct_input_wish *wish, struct oct_error *err)
{
    if (rank != 2 && rank != 3)
        return oct_fail(err, OCT_E_FORMAT,
                        "%s: has %u axes; spectra have 3, [B-scan][A-line][sample], or 2, "
                        "[A-line][sample]",
                        name, rank);
    extents_of(wish->transpose, rank, extents, order->n);
    enum oct_err e = check_wish(name, rank, extents, order->n, wish, err);
    if (!e && rank == 2)
        e = cut_into_bscans(name, order->n, wish, err);
    e = e ? e
          : oct_input_check(name, order->n[OCT_INPUT_BSCAN], order->n[OCT_INPUT_LINE],
                            order->n[OCT_INPUT_SAMPLE], err);
    /* B-scans of an array of A-lines lie as its A-lines do: outside them. */
    const bool samples_outside = rank == 2 && (wish->transpose != OCT_INPUT_AS_IS) != is_reversed;
    for (unsigned i = 0; i < 3; i++) {
        if (rank == 3)
            order->axes[i] = orders[wish->transpose][is_reversed ? 2 - i : i];
        else if (samples_outside)
            order->axes[i] = (enum oct_input_axis)((i + 2) % 3);
        else
            order->axes[i] = (enum oct_input_axis)i;
    }
    return e;
}

/* ---- values out of a plain file ---- */

static enum oct_err read_bytes(const struct oct_input_array *a, uint64_t at, void *bytes,
                               uint64_t n_bytes, uint64_t i, struct oct_error *err)
{
    const ssize_t n = oct_file_read_at(a->setup.fd, bytes, n_bytes, a->setup.first_byte + at);
    if (n < 0)
        return oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot read B-scan %" PRIu64, a->name, i);
    if ((uint64_t)n < n_bytes)
        return oct_fail(err, OCT_E_FORMAT,
                        "%s: ends within B-scan %" PRIu64 ": it was cut while being read", a->name,
                        i);
    return OCT_OK;
}

/* Of each of the `rows` rows of V values the n from i on: [rows][n]. */
static enum oct_err read_rows(struct oct_input_array *a, uint64_t plane, uint64_t rows, uint64_t i,
                              uint64_t n, char *to, struct oct_error *err)
{
    const uint64_t bytes = a->setup.kind.bytes, row = a->setup.order.n[OCT_INPUT_BSCAN] * bytes;
    enum oct_err e = OCT_OK;
    if (rows * row <= PLANE_BYTES) {
        e = read_bytes(a, plane * rows * row, a->plane, rows * row, i, err);
        for (uint64_t r = 0; !e && r < rows; r++)
            memcpy(to + r * n * bytes, a->plane + r * row + i * bytes, n * bytes);
        return e;
    }
    for (uint64_t r = 0; !e && r < rows; r++)
        e = read_bytes(a, (plane * rows + r) * row + i * bytes, to + r * n * bytes, n * bytes, i,
                       err);
    return e;
}

static enum oct_err read_file(struct oct_input_array *a, uint64_t i, uint64_t n, void *values,
                              struct oct_error *err)
{
    const struct oct_input_order *o = &a->setup.order;
    const uint64_t bytes = a->setup.kind.bytes, n_bscans = o->n[OCT_INPUT_BSCAN];
    const uint64_t outer = o->n[o->axes[0]], inner = o->n[o->axes[2]];
    enum oct_err e = OCT_OK;
    if (o->axes[0] == OCT_INPUT_BSCAN) {
        const uint64_t bscan = o->n[o->axes[1]] * inner * bytes;
        return read_bytes(a, i * bscan, values, n * bscan, i, err);
    }
    for (uint64_t plane = 0; !e && plane < outer; plane++) {
        if (o->axes[1] == OCT_INPUT_BSCAN)
            e = read_bytes(a, (plane * n_bscans + i) * inner * bytes,
                           (char *)values + plane * n * inner * bytes, n * inner * bytes, i, err);
        else
            e = read_rows(a, plane, o->n[o->axes[1]], i, n,
                          (char *)values + plane * o->n[o->axes[1]] * n * bytes, err);
    }
    return e;
}

static enum oct_err read_values(struct oct_input_array *a, uint64_t i, uint64_t n, void *values,
                                struct oct_error *err)
{
    return a->setup.read ? a->setup.read(&a->setup, i, n, values, err)
                         : read_file(a, i, n, values, err);
}

/* ---- blocks ---- */

static uint64_t bscan_samples(const struct oct_input_array *a)
{
    return a->setup.order.n[OCT_INPUT_LINE] * a->setup.order.n[OCT_INPUT_SAMPLE];
}

/* Sorts n B-scans into [n][M][N], tile by tile of the two axes that are fastest on either side. */
static void sort(const struct oct_input_array *a, uint64_t n)
{
    const struct oct_input_order *o = &a->setup.order;
    const uint64_t extents[3] = {n, o->n[OCT_INPUT_LINE], o->n[OCT_INPUT_SAMPLE]};
    const uint64_t to[3] = {extents[1] * extents[2], extents[2], 1};
    uint64_t from[3] = {0};
    from[o->axes[2]] = 1;
    from[o->axes[1]] = extents[o->axes[2]];
    from[o->axes[0]] = extents[o->axes[2]] * extents[o->axes[1]];
    /* Of the samples and the axis that is fastest in the file; where that is the samples, any. */
    const enum oct_input_axis fast = o->axes[2] == OCT_INPUT_SAMPLE ? OCT_INPUT_LINE : o->axes[2];
    const enum oct_input_axis other = fast == OCT_INPUT_LINE ? OCT_INPUT_BSCAN : OCT_INPUT_LINE;
    const uint64_t n_samples = extents[OCT_INPUT_SAMPLE];
    for (uint64_t z = 0; z < extents[other]; z++)
        for (uint64_t y0 = 0; y0 < extents[fast]; y0 += TILE)
            for (uint64_t x0 = 0; x0 < n_samples; x0 += TILE)
                for (uint64_t y = y0; y < extents[fast] && y < y0 + TILE; y++)
                    for (uint64_t x = x0; x < n_samples && x < x0 + TILE; x++)
                        a->spectra[z * to[other] + y * to[fast] + x] =
                            a->unsorted[z * from[other] + y * from[fast] +
                                        x * from[OCT_INPUT_SAMPLE]];
}

/* Reads B-scans i.. i + n - 1 as samples, in the order that they are stored in. */
static enum oct_err read_samples(struct oct_input_array *a, uint64_t i, uint64_t n, void *values,
                                 uint16_t *samples, struct oct_error *err)
{
    const uint64_t total = n * bscan_samples(a);
    const enum oct_err e = read_values(a, i, n, values, err);
    if (e || (a->scaling.is_as_is && values == samples))
        return e;
    const size_t at = oct_scaling_apply(&a->scaling, values, total, samples);
    if (at < total)
        return oct_scaling_refuse(&a->scaling, a->name, i, values, at, err);
    return OCT_OK;
}

enum oct_err oct_input_array_read(struct oct_input_array *a, uint64_t i, uint16_t *spectra,
                                  struct oct_error *err)
{
    const uint64_t n_bscans = a->setup.order.n[OCT_INPUT_BSCAN], n = bscan_samples(a);
    if (i >= n_bscans)
        return oct_fail(err, OCT_E_ARG, "%s: has no B-scan %" PRIu64, a->name, i);
    if (a->is_in_order)
        return read_samples(a, i, 1, a->values ? a->values : spectra, spectra, err);
    if (i < a->kept || i - a->kept >= a->n_kept) {
        a->n_kept = 0;
        a->kept = i - i % a->block;
        const uint64_t left = n_bscans - a->kept, n_read = left < a->block ? left : a->block;
        const enum oct_err e =
            read_samples(a, a->kept, n_read, a->values ? a->values : a->unsorted, a->unsorted, err);
        if (e)
            return e;
        if (a->spectra != a->unsorted)
            sort(a, n_read);
        a->n_kept = n_read;
    }
    memcpy(spectra, a->spectra + (i - a->kept) * n, n * sizeof(*spectra));
    return OCT_OK;
}

/* ---- making one ---- */

/* How many B-scans are read together: as many as fit, where each touches all of the file. */
static uint64_t choose_block(const struct oct_input_array *a)
{
    const struct oct_input_order *o = &a->setup.order;
    const uint64_t n = o->n[OCT_INPUT_BSCAN], wanted = a->setup.bscans_at_once;
    const uint64_t most = BLOCK_BYTES / (bscan_samples(a) * a->setup.kind.bytes);
    if (o->axes[0] == OCT_INPUT_BSCAN && wanted <= 1)
        return 1;
    uint64_t block = most < n ? most : n;
    if (wanted > 0 && wanted < block)
        block -= block % wanted;
    if (o->axes[0] == OCT_INPUT_BSCAN && wanted < block)
        block = wanted;
    return block > 0 ? block : 1;
}

static void *room_of(uint64_t n, size_t bytes)
{
    return n > 0 ? malloc(n * bytes) : NULL;
}

static bool make_room(struct oct_input_array *a)
{
    const struct oct_input_order *o = &a->setup.order;
    const uint64_t n = a->block * bscan_samples(a);
    const bool is_sorted = o->axes[0] == OCT_INPUT_BSCAN && o->axes[1] == OCT_INPUT_LINE;
    const uint64_t plane = o->n[o->axes[1]] * o->n[OCT_INPUT_BSCAN] * a->setup.kind.bytes;
    a->is_in_order = is_sorted && a->block == 1;
    if (!a->scaling.is_as_is && !(a->values = room_of(n, a->setup.kind.bytes)))
        return false;
    if (!a->is_in_order && !(a->unsorted = room_of(n, sizeof(uint16_t))))
        return false;
    if (!a->is_in_order && !(a->spectra = is_sorted ? a->unsorted : room_of(n, sizeof(uint16_t))))
        return false;
    return a->setup.read || o->axes[2] != OCT_INPUT_BSCAN || plane > PLANE_BYTES ||
           (a->plane = room_of(plane, 1)) != NULL;
}

static enum oct_err find_range(struct oct_input_array *a, struct oct_error *err)
{
    const uint64_t n_bscans = a->setup.order.n[OCT_INPUT_BSCAN];
    enum oct_err e = OCT_OK;
    for (uint64_t i = 0; !e && i < n_bscans && a->scaling.is_finite; i += a->block) {
        const uint64_t n = n_bscans - i < a->block ? n_bscans - i : a->block;
        e = read_values(a, i, n, a->values, err);
        if (!e)
            oct_scaling_look(&a->scaling, a->values, n * bscan_samples(a));
    }
    return e ? e : oct_scaling_settle(&a->scaling, a->name, err);
}

enum oct_err oct_input_array_create(struct oct_input_array **array,
                                    const struct oct_input_array_setup *setup,
                                    const struct oct_input_wish *wish,
                                    struct oct_input_facts *facts, struct oct_error *err)
{
    *array = NULL;
    const uint64_t *n = setup->order.n;
    enum oct_err e = OCT_OK;
    struct oct_input_array *a = calloc(1, sizeof(*a));
    if (!a || !(a->name = strdup(setup->name)))
        goto no_memory;
    a->setup = *setup;
    oct_scaling_init(&a->scaling, &setup->kind, wish);
    a->block = choose_block(a);
    if (!make_room(a))
        goto no_memory;
    if (a->scaling.needs_range && (e = find_range(a, err)) != OCT_OK)
        goto fail;
    facts->n_bscans = n[OCT_INPUT_BSCAN];
    facts->n_lines = (uint32_t)n[OCT_INPUT_LINE];
    facts->n_samples = (uint32_t)n[OCT_INPUT_SAMPLE];
    oct_scaling_tell(&a->scaling, facts->scaling, sizeof(facts->scaling), &facts->bits);
    *array = a;
    return OCT_OK;
no_memory:
    e = oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", setup->name);
fail:
    oct_input_array_destroy(a);
    return e;
}

enum oct_err oct_input_array_of_file(struct oct_input_array **array,
                                     const struct oct_input_probe *probe, const uint64_t n[3],
                                     unsigned sample_bytes, const struct oct_input_wish *wish,
                                     struct oct_input_facts *facts, struct oct_error *err)
{
    const struct oct_input_array_setup setup = {
        .name = probe->name,
        .order = {{n[0], n[1], n[2]}, {OCT_INPUT_BSCAN, OCT_INPUT_LINE, OCT_INPUT_SAMPLE}},
        .kind = {'u', sample_bytes, false},
        .fd = probe->fd,
    };
    const enum oct_err e = oct_input_check(probe->name, n[0], n[1], n[2], err);
    return e ? e : oct_input_array_create(array, &setup, wish, facts, err);
}

enum oct_err oct_input_check_stored(const char *name, uint64_t n_bytes, uint64_t stored_bytes,
                                    struct oct_error *err)
{
    if (stored_bytes > 0 && n_bytes / MOST_PACKING <= stored_bytes)
        return OCT_OK;
    return oct_fail(err, OCT_E_FORMAT,
                    "%s: of %" PRIu64 " bytes of spectra the file has %" PRIu64
                    ": it was never written",
                    name, n_bytes, stored_bytes);
}

void oct_input_array_destroy(struct oct_input_array *a)
{
    if (!a)
        return;
    if (a->spectra != a->unsorted)
        free(a->spectra);
    free(a->unsorted);
    free(a->values);
    free(a->plane);
    free(a->name);
    free(a);
}
