/* HDF5 files of any program: one dataset of numbers holds the spectra, [B-scan][A-line][sample] or
 * [A-line][sample]. The one that the user names, or the one that could be: of three axes if there
 * is any such, else of two. */
#include "formats/input/array.h"
#include "formats/input/formats.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_PACKING 2048u /* gzip packs zeros by 1032, and there may be a filter before it */

struct oct_input {
    struct oct_volume_array *source;
    struct oct_input_array *array;
    struct oct_input_order order;
};

static bool hdf5_is(const struct oct_input_probe *probe)
{
    return oct_input_is_hdf5(probe);
}

/* ---- which dataset ---- */

/* n_samples: of an A-line; 0: any. */
static bool could_be(const struct oct_volume_array_entry *e, const struct oct_input_wish *wish,
                     uint32_t n_samples)
{
    const struct oct_input_wish axes = {.dataset = "", .transpose = wish->transpose};
    struct oct_input_order order;
    return oct_input_order_find(&order, "", e->rank, e->dims, false, &axes, NULL) == OCT_OK &&
           (n_samples == 0 || order.n[OCT_INPUT_SAMPLE] == n_samples);
}

/* The one candidate among those of three axes, or where there are none, of two. *n: how many. */
static const struct oct_volume_array_entry *find_candidate(const struct oct_input_probe *probe,
                                                           const struct oct_input_wish *wish,
                                                           uint32_t n_samples, unsigned *n)
{
    const struct oct_volume_array_entry *one = NULL;
    *n = 0;
    for (unsigned rank = 3; rank >= 2 && *n == 0; rank--)
        for (unsigned i = 0; i < probe->n_arrays; i++)
            if (probe->arrays[i].rank == rank && could_be(&probe->arrays[i], wish, n_samples)) {
                one = &probe->arrays[i];
                ++*n;
            }
    return one;
}

/* "/raw [240][512][1024] u16" */
static void describe(const struct oct_volume_array_entry *e, char *text, size_t text_bytes)
{
    int n = snprintf(text, text_bytes, "%s ", e->name.text);
    for (unsigned i = 0; i < e->rank && n > 0 && (size_t)n < text_bytes; i++)
        n += snprintf(text + n, text_bytes - (size_t)n, "[%" PRIu64 "]", e->dims[i]);
    if (n > 0 && (size_t)n < text_bytes)
        snprintf(text + n, text_bytes - (size_t)n, " %c%u",
                 e->is_float    ? 'f'
                 : e->is_signed ? 'i'
                                : 'u',
                 8 * e->value_bytes);
}

/* Names all candidates, or all datasets, as far as a line has room. */
static enum oct_err refuse(const struct oct_input_probe *probe, const struct oct_input_wish *wish,
                           bool candidates, const char *what, struct oct_error *err)
{
    char list[300] = "", one[120];
    unsigned n = 0, n_left = 0;
    for (unsigned i = 0; i < probe->n_arrays; i++) {
        if (candidates && !could_be(&probe->arrays[i], wish, 0))
            continue;
        describe(&probe->arrays[i], one, sizeof(one));
        const size_t used = strlen(list);
        if (used + strlen(one) + 3 > sizeof(list))
            n_left++;
        else
            snprintf(list + used, sizeof(list) - used, "%s%s", n++ ? ", " : "", one);
    }
    char more[32] = "";
    if (n_left)
        snprintf(more, sizeof(more), " and %u more", n_left);
    return oct_fail(err, OCT_E_FORMAT, "%s: %s: %s%s", probe->name, what,
                    n ? list : "no dataset of numbers", more);
}

static enum oct_err choose(const struct oct_volume_array_entry **chosen,
                           const struct oct_input_probe *probe, const struct oct_input_wish *wish,
                           struct oct_error *err)
{
    unsigned n;
    *chosen = oct_input_array_named(probe, wish->dataset);
    if (*chosen)
        return OCT_OK;
    if (wish->dataset[0]) {
        char what[120];
        snprintf(what, sizeof(what), "has no dataset %.64s, only", wish->dataset);
        return refuse(probe, wish, false, what, err);
    }
    *chosen = find_candidate(probe, wish, wish->n_samples, &n);
    if (n != 1)
        *chosen = find_candidate(probe, wish, 0, &n);
    if (n == 1)
        return OCT_OK;
    return n > 1 ? refuse(probe, wish, true,
                          "which dataset are spectra? file.dataset (--dataset) names one of", err)
                 : refuse(probe, wish, false, "has no dataset that could be spectra", err);
}

/* ---- opening ---- */

/* B-scans i to i + n - 1, as they are stored. Where two axes stand for three, the A-lines of a
 * B-scan lie one after another. */
static enum oct_err read_bscans(void *context, uint64_t i, uint64_t n, void *values,
                                struct oct_error *err)
{
    struct oct_input *in = context;
    const struct oct_volume_array_facts *f = oct_volume_array_facts(in->source);
    const struct oct_input_order *o = &in->order;
    uint64_t first[OCT_VOLUME_ARRAY_MAX_RANK] = {0}, count[OCT_VOLUME_ARRAY_MAX_RANK] = {0};
    unsigned axis = 0; /* of the file */
    for (unsigned k = 0; k < 3; k++) {
        count[axis] = o->n[o->axes[k]];
        if (o->axes[k] == OCT_INPUT_BSCAN) {
            first[axis] = i;
            count[axis] = n;
        }
        if (f->rank == 2 && o->axes[k] == OCT_INPUT_BSCAN) {
            first[axis] *= o->n[OCT_INPUT_LINE];
            count[axis] *= o->n[OCT_INPUT_LINE];
            k++; /* the A-lines, which are in it */
        }
        axis++;
    }
    return oct_volume_array_read_box(in->source, first, count, values, err);
}

/* B-scans that a chunk has. */
static uint64_t bscans_of_chunk(const struct oct_volume_array_facts *f,
                                const struct oct_input_order *o)
{
    for (unsigned k = 0; f->chunk[0] > 0 && k < f->rank; k++) {
        if (f->rank == 3 && o->axes[k] == OCT_INPUT_BSCAN)
            return f->chunk[k];
        if (f->rank == 2 && o->axes[k] == OCT_INPUT_BSCAN)
            return (f->chunk[k] + o->n[OCT_INPUT_LINE] - 1) / o->n[OCT_INPUT_LINE];
    }
    return 1;
}

/* A dataset that was never written is all zeros, however large it claims to be. */
static enum oct_err check_storage(const char *name, const struct oct_volume_array_facts *f,
                                  const struct oct_input_order *o, struct oct_error *err)
{
    const uint64_t n_bytes = o->n[0] * o->n[1] * o->n[2] * f->value_bytes; /* geometry.h's limits */
    if (f->stored_bytes == 0 || n_bytes / MOST_PACKING > f->stored_bytes)
        return oct_fail(err, OCT_E_FORMAT,
                        "%s: of %" PRIu64 " bytes of spectra the file has %" PRIu64
                        ": it was never written",
                        name, n_bytes, f->stored_bytes);
    return OCT_OK;
}

static void adopt_spacing(struct oct_input_facts *facts, const struct oct_volume_array_facts *f,
                          const struct oct_input_order *o)
{
    for (unsigned k = 0; f->rank == 3 && k < 3; k++) {
        if (o->axes[k] == OCT_INPUT_LINE)
            facts->width_um = f->spacing_um[k] * (double)o->n[OCT_INPUT_LINE];
        if (o->axes[k] == OCT_INPUT_BSCAN)
            facts->height_um = f->spacing_um[k] * (double)o->n[OCT_INPUT_BSCAN];
    }
}

static void hdf5_close(struct oct_input *input)
{
    if (!input)
        return;
    oct_input_array_destroy(input->array);
    oct_volume_array_close(input->source);
    free(input);
}

static enum oct_err open_array(struct oct_input *in, const struct oct_input_probe *probe,
                               const struct oct_volume_array_entry *entry,
                               const struct oct_input_wish *wish, struct oct_input_facts *facts,
                               struct oct_error *err)
{
    enum oct_err e = oct_volume_array_open(&in->source, probe->path, entry->name.text, err);
    if (e)
        return e;
    const struct oct_volume_array_facts *f = oct_volume_array_facts(in->source);
    char name[160];
    snprintf(name, sizeof(name), "%.90s: %.64s", probe->name, entry->name.text);
    if ((e = oct_input_order_find(&in->order, name, f->rank, f->dims, false, wish, err)) ||
        (e = check_storage(name, f, &in->order, err)))
        return e;
    const char kind = f->is_float ? 'f' : f->is_signed ? 'i' : 'u';
    const struct oct_input_array_setup setup = {
        .name = name,
        .order = in->order,
        .kind = {kind, f->memory_bytes, false},
        .bscans_at_once = f->place ? 0 : bscans_of_chunk(f, &in->order),
        .fd = probe->fd,
        .first_byte = f->place,
        .context = in,
        .read = f->place ? NULL : read_bscans,
    };
    adopt_spacing(facts, f, &in->order);
    return oct_input_array_create(&in->array, &setup, wish, facts, err);
}

static enum oct_err hdf5_open(struct oct_input **input, const struct oct_input_probe *probe,
                              const struct oct_input_wish *wish, struct oct_input_facts *facts,
                              struct oct_calibration *cal, struct oct_error *err)
{
    (void)cal;
    const struct oct_volume_array_entry *entry;
    *input = NULL;
    if (!probe->arrays)
        return oct_fail(err, OCT_E_FORMAT, "%s: damaged or truncated HDF5 file", probe->name);
    enum oct_err e = choose(&entry, probe, wish, err);
    if (e)
        return e;
    struct oct_input *in = calloc(1, sizeof(*in));
    if (!in)
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", probe->name);
    e = open_array(in, probe, entry, wish, facts, err);
    if (e) {
        hdf5_close(in);
        return e;
    }
    *input = in;
    return OCT_OK;
}

static enum oct_err hdf5_read(struct oct_input *input, uint64_t i, uint16_t *spectra,
                              uint64_t *time_ns, struct oct_error *err)
{
    *time_ns = 0;
    return oct_input_array_read(input->array, i, spectra, err);
}

const struct oct_input_ops oct_input_hdf5 = {
    .name = "HDF5",
    .is = hdf5_is,
    .open = hdf5_open,
    .read = hdf5_read,
    .close = hdf5_close,
};
