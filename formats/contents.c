#include "formats/contents.h"

#include "numeric/picture.h"
#include "pipeline/volume/volume.h"

#include <stdlib.h>
#include <string.h>

#define MOST_DATASETS 4096u
#define LEAST_SIDE 8u                  /* of what is shown and does not say its axes */
#define BOX_BYTES ((uint64_t)16 << 20) /* read at once */

/* The kinds of results, and how those are known that do not say theirs: the first of which the file
 * has the dataset, also below /pair/1. */
static const struct kind {
    const char *kind, *words, *mark;
    const char *first; /* what the file is for */
} kinds[] = {
    {"layers", "layers of the retina, by octctl surfaces", "/layers", "/thickness/retina"},
    {"layers", "layers of the retina, by octctl surfaces", "/quality", "/thickness_um"},
    {"flow", "blood flow, by octctl flow", "/flow/d", "/slabs"},
    {"trace", "movement of a layer, by octctl trace", "/trace/nm", "/trace"},
    {"level-set", "level set of a layer, by octctl surfaces --phi", "/phi_before", "/phi"},
    {"mask", "denoised mask of a volume, by octctl surfaces --mask", "/mask", "/mask"},
    {"cones", "spacing of photoreceptors, by octctl cones", "/cones", "/cones/spacing_px"},
    {"correlation", "correlation of pictures, by octctl correlate", "/correlation",
     "/correlation/c2d"},
    {"volumes", "volumes registered in 3D, by octctl register-volumes", "/displacement", "/warped"},
    {"mosaic", "mosaic of pictures, by octctl register", "/pictures", "/average"},
    {"frames", "frames registered and averaged, by octctl register", "/shifts", "/average"},
    {"volume", "volume registered B-scan by B-scan, by octctl register", "/frames/shift_px",
     "/bscans"},
    {"cell-scores", "scores of cells, by octctl cells --maps", "/best_radius", "/score"},
    {"cells", "tracks of cells, by octctl cells", "/tracks", "/tracks"},
};
static const struct kind recording = {"recording", "recording of octd", "", "/bscans"};
static const struct kind unknown_result = {"result", "results of octctl", "", ""};
static const struct kind foreign = {"", "HDF5 file of another program", "", ""};

/* Whether a dataset is `name`, or lies in the group of that name; of one pair among several too. */
static bool is_at(const struct oct_volume_array_entry *e, const char *name)
{
    const char *text = e->name.text;
    const size_t n = strlen(name);
    if (strncmp(text, "/pair/", 6) == 0 && strchr(text + 6, '/'))
        text = strchr(text + 6, '/');
    return strncmp(text, name, n) == 0 && (text[n] == '\0' || text[n] == '/');
}

static bool has(const struct oct_contents *c, const char *name, unsigned rank)
{
    for (unsigned i = 0; i < c->n; i++)
        if (is_at(&c->datasets[i], name) && (rank == 0 || c->datasets[i].rank == rank))
            return true;
    return false;
}

static const struct kind *find_kind(const struct oct_contents *c)
{
    const bool is_ours = strncmp(c->root.software, "octd ", 5) == 0;
    const size_t n_kinds = sizeof(kinds) / sizeof(kinds[0]);
    for (size_t i = 0; is_ours && c->root.kind[0] && i < n_kinds; i++)
        if (strcmp(c->root.kind, kinds[i].kind) == 0)
            return &kinds[i];
    if (is_ours && c->root.kind[0])
        return &unknown_result;
    if (has(c, "/frames/valid", 1) || has(c, "/spectra", 3) || has(c, OCT_PACKED_SPECTRA, 3))
        return is_ours ? &recording : &foreign;
    for (size_t i = 0; is_ours && i < n_kinds; i++)
        if (has(c, kinds[i].mark, 0))
            return &kinds[i];
    return is_ours ? &unknown_result : &foreign;
}

/* Pictures: by the names of their axes, else by their sides. */
static bool is_shown(const struct oct_volume_array_entry *e)
{
    const unsigned last = e->rank - 1;
    if ((e->rank != 2 && e->rank != 3) || e->dims[0] == 0 || is_at(e, "/frames") ||
        is_at(e, "/calibration") || is_at(e, "/spectra") || is_at(e, OCT_PACKED_SPECTRA))
        return false;
    if (e->dims[last] > OCT_PICTURE_MOST_SIDE || e->dims[last - 1] > OCT_PICTURE_MOST_SIDE)
        return false;
    const uint64_t least = e->axes[last][0] ? 2 : LEAST_SIDE;
    return e->dims[last] >= least && e->dims[last - 1] >= least;
}

/* In order: what the file is for, what else can be shown, the rest. */
static void sort(struct oct_contents *c, const struct kind *kind,
                 struct oct_volume_array_entry *sorted)
{
    unsigned n = 0;
    for (unsigned turn = 0; turn < 3; turn++)
        for (unsigned i = 0; i < c->n; i++) {
            const struct oct_volume_array_entry *e = &c->datasets[i];
            const bool shown = is_shown(e);
            if ((shown ? is_at(e, kind->first) ? 0u : 1u : 2u) != turn)
                continue;
            sorted[n++] = *e;
            c->n_shown += shown;
        }
}

static void leave_out_scales(struct oct_contents *c)
{
    unsigned n = 0;
    for (unsigned i = 0; i < c->n; i++)
        if (!c->datasets[i].is_scale)
            c->datasets[n++] = c->datasets[i];
    c->n = n;
}

enum oct_err oct_contents_look(struct oct_contents *contents, const char *path,
                               struct oct_error *err)
{
    struct oct_contents *c = contents;
    *c = (struct oct_contents){.kind = "", .words = ""};
    c->datasets = calloc(MOST_DATASETS, sizeof(*c->datasets));
    if (!c->datasets)
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", path);
    const enum oct_err e =
        oct_volume_array_entries(path, &c->root, c->datasets, MOST_DATASETS, &c->n, err);
    if (e)
        return e;
    leave_out_scales(c);
    const struct kind *kind = find_kind(c);
    c->kind = kind->kind;
    c->words = kind->words;
    c->is_result = kind != &recording && kind != &foreign;
    struct oct_volume_array_entry *sorted = calloc(c->n + 1, sizeof(*sorted));
    if (!sorted)
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", path);
    sort(c, kind, sorted);
    free(c->datasets);
    c->datasets = sorted;
    return OCT_OK;
}

void oct_contents_finish(struct oct_contents *contents)
{
    free(contents->datasets);
    free(contents->root.source);
    *contents = (struct oct_contents){.kind = "", .words = ""};
}

/* ---- reading all ---- */

/* Boxes of a dataset in order, each at most BOX_BYTES: whole along the axes behind `axis`, a part
 * of that one, and one place of those before it. */
struct boxes {
    unsigned axis;
    uint64_t step; /* along it */
    uint64_t first[OCT_VOLUME_ARRAY_MAX_RANK], count[OCT_VOLUME_ARRAY_MAX_RANK];
    uint64_t row_bytes; /* of one step along it */
};

/* False: there are none. */
static bool boxes_begin(struct boxes *b, const struct oct_volume_array_facts *f)
{
    *b = (struct boxes){.axis = f->rank - 1, .row_bytes = f->memory_bytes};
    for (unsigned i = 0; i < f->rank; i++)
        if (f->dims[i] == 0)
            return false;
    while (b->axis > 0 && f->dims[b->axis] <= BOX_BYTES / b->row_bytes)
        b->row_bytes *= f->dims[b->axis--];
    b->step = BOX_BYTES / b->row_bytes;
    for (unsigned i = 0; i < f->rank; i++)
        b->count[i] = i < b->axis ? 1 : f->dims[i];
    return true;
}

/* False: there are no more. */
static bool boxes_next(struct boxes *b, const struct oct_volume_array_facts *f)
{
    b->first[b->axis] += b->step;
    for (unsigned i = b->axis; b->first[i] >= f->dims[i]; i--) {
        if (i == 0)
            return false;
        b->first[i] = 0;
        b->first[i - 1]++;
    }
    return true;
}

static enum oct_err read_dataset(const char *path, const struct oct_volume_array_entry *entry,
                                 void *values, uint64_t *bytes, struct oct_error *err)
{
    struct oct_volume_array *array;
    struct boxes b;
    enum oct_err e = oct_volume_array_open(&array, path, entry->name.text, err);
    if (e)
        return e;
    const struct oct_volume_array_facts *f = oct_volume_array_facts(array);
    for (bool more = boxes_begin(&b, f); more && !e; more = boxes_next(&b, f)) {
        const uint64_t left = f->dims[b.axis] - b.first[b.axis];
        b.count[b.axis] = left < b.step ? left : b.step;
        e = oct_volume_array_read_box(array, b.first, b.count, values, err);
        *bytes += b.count[b.axis] * b.row_bytes;
    }
    oct_volume_array_close(array);
    return e;
}

enum oct_err oct_contents_read(const struct oct_contents *contents, const char *path,
                               uint64_t *bytes, struct oct_error *err)
{
    *bytes = 0;
    void *values = malloc(BOX_BYTES);
    if (!values)
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", path);
    enum oct_err e = OCT_OK;
    for (unsigned i = 0; i < contents->n && !e; i++)
        e = read_dataset(path, &contents->datasets[i], values, bytes, err);
    free(values);
    return e;
}
