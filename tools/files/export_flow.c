/* What octctl flow found, a file of its own: slabs/NAME and slabs/NAME_structure, which are
 * pictures from above, and the volumes flow/NAME and velocity/NAME. */
#include "formats/contents.h"
#include "pipeline/base/sha256.h"
#include "pipeline/volume/array.h"
#include "tools/alloc.h"
#include "tools/commands.h"
#include "tools/files/export_values.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STRUCTURE "_structure"

bool oct_export_input_is_flow(const char *path)
{
    struct oct_contents contents;
    const bool is_flow =
        oct_contents_look(&contents, path, NULL) == OCT_OK && strcmp(contents.kind, "flow") == 0;
    oct_contents_finish(&contents);
    return is_flow;
}

/* Of what was found of each place: neither of names nor of the file's. */
static enum oct_err add_places(struct oct_sha256 *sum, const char *path, const char *name,
                               struct oct_error *err)
{
    struct oct_volume_array *array;
    enum oct_err e = oct_volume_array_open(&array, path, name, err);
    if (e)
        return e;
    const uint64_t n = oct_volume_array_facts(array)->dims[0];
    double *values = oct_alloc(n, sizeof(*values));
    if (oct_volume_array_facts(array)->rank != 1)
        e = oct_fail(err, OCT_E_FORMAT, "%s: %s is no row of numbers", path, name);
    e = e ? e : oct_volume_array_read_f64(array, values, err);
    if (!e)
        oct_sha256_add(sum, values, n * sizeof(*values));
    free(values);
    oct_volume_array_close(array);
    return e;
}

enum oct_err oct_export_input_open_flow(struct oct_export_input *in, struct oct_sha256 *sum,
                                        struct oct_error *err)
{
    static const char *const of_places[] = {"/flow/noise", "/flow/snr_db", "/flow/time_s"};
    enum oct_err e = OCT_OK;
    in->is_flow = true;
    oct_sha256_init(sum);
    for (size_t i = 0; i < sizeof(of_places) / sizeof(of_places[0]) && !e; i++)
        e = add_places(sum, in->path, of_places[i], err);
    return e;
}

/* ---- a dataset ---- */

struct flow {
    struct oct_volume_array *array;
    char name[80], slab[48];
    struct oct_span span; /* of the first axis of a volume; of a picture all of its rows */
    size_t n;             /* values of a plane */
    float *row;           /* of u8 */
};

static enum oct_err read_plane(void *context, uint32_t plane, void *values, struct oct_error *err)
{
    struct flow *f = context;
    const uint64_t i = f->span.first + plane * f->span.step;
    float *to = f->row ? f->row : values;
    const enum oct_err e = oct_volume_array_facts(f->array)->rank == 2
                               ? oct_volume_array_read(f->array, to, err)
                               : oct_volume_array_read_row(f->array, i, to, err);
    for (size_t k = 0; f->row && !e && k < f->n; k++)
        ((uint8_t *)values)[k] = (uint8_t)f->row[k];
    return e;
}

static void close_flow(void *context)
{
    struct flow *f = context;
    oct_volume_array_close(f->array);
    free(f->row);
    free(f);
}

/* "slabs/NAME" or "slabs/NAME_structure". */
static bool is_slab(const char *name)
{
    return strncmp(name, "slabs/", 6) == 0;
}

static bool is_structure(const char *name)
{
    const size_t n = strlen(name), n_end = strlen(STRUCTURE);
    return n > n_end && strcmp(name + n - n_end, STRUCTURE) == 0;
}

static void name_slab(struct flow *f, struct oct_export_form *form)
{
    const size_t n = strlen(f->name), n_end = is_structure(f->name) ? strlen(STRUCTURE) : 0;
    form->quantity = n_end ? "intensity" : is_slab(f->name) ? "significance" : "";
    if (is_slab(f->name))
        snprintf(f->slab, sizeof(f->slab), "%.*s", (int)(n - 6 - n_end), f->name + 6);
    form->slab = f->slab;
    form->method = oct_volume_array_facts(f->array)->method;
}

/* What greys of a u8 volume stand for. */
static void scale_greys(struct oct_export_values *values, double step)
{
    const uint32_t n = values->form.dims[0];
    values->lo = oct_alloc(n, sizeof(*values->lo));
    values->hi = oct_alloc(n, sizeof(*values->hi));
    for (uint32_t i = 0; i < n; i++)
        values->hi[i] = 255 * step;
}

static enum oct_err lay_out(struct oct_export_values *values, struct flow *f,
                            const struct oct_export_wish *wish, struct oct_export_input *in,
                            struct oct_error *err)
{
    const struct oct_volume_array_facts *a = oct_volume_array_facts(f->array);
    struct oct_export_form *form = &values->form;
    enum oct_err e = OCT_OK;
    if ((a->rank != 2 && a->rank != 3) || !a->axes[a->rank - 1][0])
        return oct_fail(err, OCT_E_ARG, "%s: %s is no picture and no volume", in->path, f->name);
    if (a->rank == 2 && wish->frames.last > 0)
        return oct_fail(err, OCT_E_ARG, "%s: %s has no planes, of which --frames could choose",
                        in->path, f->name);
    *form = (struct oct_export_form){.dims = {1},
                                     .axes = {"slab"},
                                     .um = {NAN, NAN, NAN},
                                     .name = f->name,
                                     .unit = strcmp(a->unit, "1") == 0 ? "" : a->unit,
                                     .plane_s = NAN};
    if (a->rank == 3)
        e = oct_export_values_range(in, wish, (uint32_t)a->dims[0], &f->span, err);
    for (unsigned i = 0; i < a->rank && !e; i++) {
        const unsigned to = 3 - a->rank + i;
        form->dims[to] = to == 0 ? oct_span_count(f->span) : (uint32_t)a->dims[i];
        form->axes[to] = a->axes[i];
        form->um[to] = a->spacing_um[i] * (to == 0 ? f->span.step : 1);
    }
    form->is_upright = a->rank == 2;
    form->sample = a->is_float ? OCT_EXPORT_F32 : OCT_EXPORT_U8;
    f->n = (size_t)form->dims[1] * form->dims[2];
    f->row = a->is_float ? NULL : oct_alloc(f->n, sizeof(*f->row));
    name_slab(f, form);
    values->what = a->rank == 2 ? "planes" : "places";
    if (!e && !a->is_float && a->step > 0)
        scale_greys(values, a->step);
    return e;
}

static void say_taken(const char *name)
{
    fputs("octctl export: ", stderr);
    oct_command_put_name(stderr, name);
    fputs(" is taken; --dataset takes ", stderr);
}

static void say_other_slabs(const struct oct_contents *contents)
{
    bool is_said = false;
    for (unsigned i = 1; i < contents->n_shown; i++) {
        const char *const name = contents->datasets[i].name.text + 1;
        if (!is_slab(name) || is_structure(name))
            continue;
        if (is_said)
            fputs(", ", stderr);
        else
            say_taken(contents->datasets[0].name.text + 1);
        oct_command_put_name(stderr, name);
        is_said = true;
    }
    if (is_said)
        fputc('\n', stderr);
}

static enum oct_err find_first(char *name, size_t n_bytes, const char *path, bool quiet,
                               struct oct_error *err)
{
    struct oct_contents contents;
    const enum oct_err e = oct_contents_look(&contents, path, err);
    if (!e && contents.n_shown > 0)
        snprintf(name, n_bytes, "%s", contents.datasets[0].name.text + 1);
    if (!e && !quiet)
        say_other_slabs(&contents);
    oct_contents_finish(&contents);
    return e;
}

enum oct_err oct_export_values_flow(struct oct_export_values *values, struct oct_export_input *in,
                                    const struct oct_export_wish *wish, struct oct_error *err)
{
    struct flow *f = oct_alloc(1, sizeof(*f));
    char path[sizeof(f->name) + 1];
    enum oct_err e = OCT_OK;
    *values = (struct oct_export_values){.context = f, .read = read_plane, .close = close_flow};
    snprintf(f->name, sizeof(f->name), "%s", wish->dataset ? wish->dataset : "");
    if (!wish->dataset)
        e = find_first(f->name, sizeof(f->name), in->path, wish->config->quiet, err);
    snprintf(path, sizeof(path), "/%s", f->name);
    e = e ? e : oct_volume_array_open(&f->array, in->path, path, err);
    return e ? e : lay_out(values, f, wish, in, err);
}
