/* HDF5 files of any program: one dataset of numbers holds the spectra, [B-scan][A-line][sample] or
 * [A-line][sample]. The one that the user names, or the one that could be: of three axes if there
 * is any such, else of two. */
#include "formats/input/array.h"
#include "formats/input/formats.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

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
static enum oct_err read_bscans(const struct oct_input_array_setup *setup, uint64_t i, uint64_t n,
                                void *values, struct oct_error *err)
{
    const struct oct_volume_array_facts *f = oct_volume_array_facts(setup->context);
    const struct oct_input_order *o = &setup->order;
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
    return oct_volume_array_read_box(setup->context, first, count, values, err);
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

static enum oct_err hdf5_open(struct oct_input *input, const struct oct_input_probe *probe,
                              const struct oct_input_wish *wish, struct oct_input_facts *facts,
                              struct oct_calibration *cal, struct oct_error *err)
{
    (void)cal;
    const struct oct_volume_array_entry *entry;
    char name[160];
    struct oct_input_array_setup setup = {.name = name, .fd = probe->fd};
    const struct oct_input_order *o = &setup.order;
    if (!probe->arrays)
        return oct_fail(err, OCT_E_FORMAT, "%s: damaged or truncated HDF5 file", probe->name);
    enum oct_err e = choose(&entry, probe, wish, err);
    e = e ? e : oct_volume_array_open(&input->source, probe->path, entry->name.text, err);
    if (e)
        return e;
    const struct oct_volume_array_facts *f = oct_volume_array_facts(input->source);
    snprintf(name, sizeof(name), "%.90s: %.64s", probe->name, entry->name.text);
    e = oct_input_order_find(&setup.order, name, f->rank, f->dims, false, wish, err);
    if (!e) /* within geometry.h's limits */
        e = oct_input_check_stored(name, o->n[0] * o->n[1] * o->n[2] * f->value_bytes,
                                   f->stored_bytes, err);
    if (e)
        return e;
    setup.kind = (struct oct_sample_kind){f->is_float    ? 'f'
                                          : f->is_signed ? 'i'
                                                         : 'u',
                                          f->memory_bytes, false};
    setup.first_byte = f->place;
    if (!f->place) {
        setup.bscans_at_once = bscans_of_chunk(f, o);
        setup.context = input->source;
        setup.read = read_bscans;
    }
    adopt_spacing(facts, f, o);
    return oct_input_array_create(&input->array, &setup, wish, facts, err);
}

const struct oct_input_ops oct_input_hdf5 = {
    .name = "HDF5",
    .is = hdf5_is,
    .open = hdf5_open,
};
