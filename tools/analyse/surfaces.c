/* octctl surfaces: layers of the retina, their thickness, and slabs that follow them. */
#include "tools/analyse/surfaces.h"

#include "formats/recording.h"
#include "formats/volumes.h"
#include "pipeline/volume/array.h"
#include "plot/plot.h"
#include "tools/alloc.h"
#include "tools/commands.h"
#include "tools/picture_options.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define MOST_DB 1e6F
#define MOST_COUNTS 1e20F /* of counts^2, and of what does not say what it is */

/* The layers that are measured, the retina first. */
static const struct oct_surfaces_thickness thicknesses[OCT_SURFACES_N_THICKNESSES] = {
    {.name = "retina", .upper = OCT_LAYER_ILM, .lower = OCT_LAYER_RPE},
    {.name = "rnfl", .upper = OCT_LAYER_ILM, .lower = OCT_LAYER_RNFL_GCL},
    {.name = "gcl_ipl", .upper = OCT_LAYER_RNFL_GCL, .lower = OCT_LAYER_IPL_INL},
    {.name = "inl", .upper = OCT_LAYER_IPL_INL, .lower = OCT_LAYER_INL_OPL},
    {.name = "opl", .upper = OCT_LAYER_INL_OPL, .lower = OCT_LAYER_OPL_ONL},
    {.name = "onl", .upper = OCT_LAYER_OPL_ONL, .lower = OCT_LAYER_IS_OS},
    {.name = "outer", .upper = OCT_LAYER_IS_OS, .lower = OCT_LAYER_RPE},
};
static const char *const labels[OCT_N_LAYERS] = {"ILM",     "RNFL/GCL", "IPL/INL", "INL/OPL",
                                                 "OPL/ONL", "IS/OS",    "RPE"};

static const char *const denoise_names[] = {"local", "full", "none", NULL};
static const char *const profile_names[] = {"octd", "paper", NULL};
static const char *const depth_names[] = {"right", "down", NULL};
static const char *const superior_names[] = {"first", "last", NULL};

#define C struct oct_surfaces_choice
static const struct oct_param choice_rows[] = {
    {OCT_PARAM_CHOICE("denoise", C, denoise, denoise_names), .is_option = true, .standard = "local",
     .meaning = "By what is similar within 4 voxels, or in the whole surface."},
    {OCT_PARAM("strength", C, strength), .is_option = true, .least = 1e-9, .most = 100,
     .standard = "", .unit = "pixels",
     .meaning = "The noise that is expected, instead of that of the data."},
    {OCT_PARAM("steps", C, steps), .is_option = true, .least = 1, .most = 100, .standard = "2",
     .meaning = "Steps of the denoising."},
    {OCT_PARAM_CHOICE("profile", C, profile, profile_names), .is_option = true, .standard = "octd",
     .meaning = "paper: full, with the step as published."},
    {OCT_PARAM_CHOICE("depth", C, depth, depth_names), .is_option = true, .standard = "",
     .meaning = "Where the depth runs in pictures, instead of down in PNG, TIFF and AVI and right "
                "in HDF5, .npy, .vol and DICOM."},
    {OCT_PARAM_CHOICE("superior", C, superior, superior_names), .is_option = true,
     .standard = "first", .meaning = "The B-scan that is superior."},
};
#undef C
static const struct oct_params choices = OCT_PARAMS(choice_rows);

/* ---- options ---- */

void oct_surfaces_init(void *job)
{
    struct oct_surfaces_job *s = job;
    s->given.slabs = oct_alloc((size_t)s->job.n_words + 1, sizeof(*s->given.slabs));
    s->choice.strength = NAN;
    oct_params_set_defaults(&choices, &s->choice);
}

static bool is_given(const struct oct_surfaces_job *s, const char *name)
{
    return oct_param_text(&choices, &s->given.choice, name) != NULL;
}

/* A name of --layers; its end, or NULL: it is none, or stands twice. */
static const char *read_layer(struct oct_surfaces_job *s, const char *text)
{
    const size_t n = strcspn(text, ",");
    for (unsigned k = 0; k < OCT_N_LAYERS; k++)
        if (strlen(oct_layer_names[k]) == n && strncmp(text, oct_layer_names[k], n) == 0 &&
            !s->layer[k].is_asked) {
            s->layer[k].is_asked = true;
            return text + n;
        }
    return NULL;
}

static int read_layers(struct oct_surfaces_job *s)
{
    const char *at = s->given.layers;
    while (at) {
        at = read_layer(s, at);
        if (!at)
            return oct_command_misuse(s->job.name,
                                      "--layers %s: the layers are ilm, rnfl_gcl, ipl_inl, "
                                      "inl_opl, opl_onl, is_os, rpe, each once",
                                      s->given.layers);
        at = *at ? at + 1 : NULL;
    }
    s->first = OCT_N_LAYERS;
    for (unsigned k = 0; k < OCT_N_LAYERS; k++) {
        s->layer[k].label = labels[k];
        s->layer[k].is_asked |= !s->given.layers;
        if (!s->layer[k].is_asked)
            continue;
        s->first = s->first == OCT_N_LAYERS ? (enum oct_layer)k : s->first;
        snprintf(s->layer_text + strlen(s->layer_text),
                 sizeof(s->layer_text) - strlen(s->layer_text), "%s%s",
                 s->layer_text[0] ? ", " : "", oct_layer_names[k]);
    }
    s->layer_names = s->layer_text;
    s->has_both = s->layer[OCT_LAYER_ILM].is_asked && s->layer[OCT_LAYER_RPE].is_asked;
    return 0;
}

static int read_denoise(struct oct_surfaces_job *s)
{
    const bool is_paper = s->choice.profile == 1, is_full = s->choice.denoise == OCT_SURFACES_FULL;
    if (is_paper && is_given(s, "denoise") && !is_full)
        return oct_command_misuse(s->job.name, "--profile paper is of --denoise full, not %s",
                                  denoise_names[s->choice.denoise]);
    s->is_denoised = s->choice.denoise != OCT_SURFACES_NONE;
    s->denoise_name = is_paper ? "paper" : denoise_names[s->choice.denoise];
    oct_levelset_params_default(&s->params, is_paper  ? OCT_LEVELSET_PROFILE_PAPER
                                            : is_full ? OCT_LEVELSET_PROFILE_FULL
                                                      : OCT_LEVELSET_PROFILE_LOCAL);
    s->params.steps = s->choice.steps;
    return 0;
}

static int read_spacing(struct oct_surfaces_job *s)
{
    return oct_picture_pixel_um(s->job.name, s->given.pixel_um, 3, s->um_given);
}

static int read_grid(struct oct_surfaces_job *s)
{
    const char *fovea = s->given.fovea, *eye = "";
    if (oct_picture_eye(s->job.name, s->given.eye, false, &eye))
        return 2;
    s->choice.eye = strcmp(eye, "OD") == 0   ? OCT_SURFACES_EYE_OD
                    : strcmp(eye, "OS") == 0 ? OCT_SURFACES_EYE_OS
                                             : OCT_SURFACES_EYE_UNKNOWN;
    if ((fovea || s->given.eye || is_given(s, "superior")) && !s->has_both)
        return oct_command_misuse(s->job.name, "--fovea, --eye and --superior are of the "
                                               "thickness, which needs ilm and rpe");
    s->grid.is_given = fovea != NULL;
    if (fovea && oct_option_doubles(fovea, s->grid.fovea_px, 2) != 2)
        return oct_command_misuse(s->job.name, "--fovea needs a place, B-SCAN,A-LINE, counted from "
                                               "0");
    return 0;
}

static int read_slabs(struct oct_surfaces_job *s)
{
    struct oct_error err;
    for (const char **text = s->given.slabs; *text; text++) {
        struct oct_surfaces_slab *slab = &s->slab[s->n_slabs];
        if (s->n_slabs == OCT_SURFACES_MOST_SLABS)
            return oct_command_misuse(s->job.name, "more than %u of --slab",
                                      OCT_SURFACES_MOST_SLABS);
        *slab = (struct oct_surfaces_slab){.s = s, .given = *text};
        if (oct_slab_parse(&slab->slab, *text, &err))
            return oct_command_misuse(s->job.name, "--slab %s", err.text);
        if (!s->layer[slab->slab.first.layer].is_asked || !s->layer[slab->slab.last.layer].is_asked)
            return oct_command_misuse(s->job.name, "--slab %s: --layers leaves out one of them",
                                      *text);
        oct_slab_text(&slab->slab, slab->name, sizeof(slab->name));
        if (!strchr(*text, ':')) /* "superficial" */
            snprintf(slab->name, sizeof(slab->name), "%s", *text);
        for (unsigned i = 0; i < s->n_slabs; i++)
            if (strcmp(slab->name, s->slab[i].name) == 0)
                return oct_command_misuse(s->job.name, "--slab %s: is given twice", *text);
        s->n_slabs++;
    }
    return 0;
}

/* A mask is denoised as it is: it has no layers, no A-lines and no pictures. */
static int check_useless_options(struct oct_surfaces_job *s)
{
    enum { OF_NONE = 1, OF_MASK = 2 };
    const struct oct_surfaces_options *g = &s->given;
    const struct {
        const char *option;
        bool is_given;
        unsigned useless; /* with --denoise none, with --mask */
    } rows[] = {
        {"--strength", is_given(s, "strength"), OF_NONE | OF_MASK},
        {"--steps", is_given(s, "steps"), OF_NONE},
        {"--profile", is_given(s, "profile"), OF_NONE},
        {"--phi", g->phi, OF_NONE | OF_MASK},
        {"--layers", g->layers, OF_MASK},
        {"--align", g->align, OF_MASK},
        {"--no-align", g->no_align, OF_MASK},
        {"--pixel-um", g->pixel_um, OF_MASK},
        {"--depth", is_given(s, "depth"), OF_MASK},
        {"--skip", g->skip, OF_MASK},
        {"--fovea", g->fovea, OF_MASK},
        {"--eye", s->given.eye, OF_MASK},
        {"--superior", is_given(s, "superior"), OF_MASK},
        {"--slab", *g->slabs, OF_MASK},
        {"--csv", g->csv, OF_MASK},
        {"--png", g->png, OF_MASK},
        {"--denoise none", !s->is_denoised, OF_MASK},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].is_given && rows[i].useless & OF_NONE && !s->is_denoised)
            return oct_command_misuse(s->job.name, "--denoise none takes no %s", rows[i].option);
        if (rows[i].is_given && rows[i].useless & OF_MASK && g->mask)
            return oct_command_misuse(s->job.name, "--mask takes no %s", rows[i].option);
    }
    return 0;
}

/* IN... OUT.h5, or OUT.h5 with --mask. */
static int read_names(struct oct_surfaces_job *s)
{
    if (!s->given.mask)
        return s->job.out ? 0 : oct_command_misuse(s->job.name, "which volume, and which OUT.h5?");
    if (s->job.out)
        return oct_command_misuse(s->job.name, "--mask FILE stands in place of IN; name OUT.h5 "
                                               "alone");
    s->job.out = s->job.inputs[0];
    s->job.n_inputs = 0;
    s->job.reads[0] = s->given.mask;
    s->job.ops = &oct_surfaces_mask_job;
    return 0;
}

int oct_surfaces_read_options(void *job)
{
    static int (*const readers[])(struct oct_surfaces_job *) = {
        read_layers, read_denoise,          read_spacing, read_grid,
        read_slabs,  check_useless_options, read_names};
    struct oct_surfaces_job *s = job;
    int status = 0;
    oct_param_texts_store(&choices, &s->given.choice, &s->choice);
    s->is_aligned = !s->given.no_align;
    if (s->given.align && s->given.no_align)
        return oct_command_misuse(s->job.name, "--align and --no-align exclude one another");
    for (size_t i = 0; i < sizeof(readers) / sizeof(readers[0]) && !status; i++)
        status = readers[i](s);
    return status;
}

/* ---- pictures ---- */

bool oct_surfaces_has_um(const struct oct_surfaces_job *s)
{
    return s->um[0] > 0 && s->um[1] > 0 && s->um[2] > 0;
}

/* What no light makes is as what is not finite: next to it float sums keep nothing of the rest. Of
 * counts the layers stand out in dB; 0 counts and less have none. */
static enum oct_err clean_picture(const struct oct_surfaces_job *s, struct oct_picture *picture,
                                  struct oct_error *err)
{
    const float most = s->is_db && !s->is_linear ? MOST_DB : MOST_COUNTS;
    const size_t n = (size_t)picture->height * picture->width;
    bool is_changed = s->is_linear;
    for (size_t i = 0; i < n; i++) {
        float *at = &picture->pixels[i];
        is_changed = is_changed || fabsf(*at) > most;
        *at = fabsf(*at) > most ? NAN : *at;
        if (s->is_linear)
            *at = *at > 0 ? (float)(10 * log10((double)*at)) : NAN;
    }
    return is_changed ? oct_picture_mask_not_finite(picture, err) : OCT_OK;
}

enum oct_err oct_surfaces_read(struct oct_surfaces_job *s, uint32_t b, struct oct_picture *picture,
                               struct oct_error *err)
{
    *picture = (struct oct_picture){0};
    enum oct_err e = oct_job_go_on(&s->job, err);
    if (!e)
        e = oct_pictures_read(s->pictures, b, picture, NULL, err);
    if (!e)
        e = clean_picture(s, picture, err);
    if (!e && s->is_turned)
        e = oct_picture_transpose(picture, err);
    if (e)
        oct_picture_finish(picture);
    return e;
}

/* ---- the volume ---- */

static bool is_whole(const char *path)
{
    return oct_recording_names_dataset(path) || oct_pictures_is_volume(path);
}

/* Pictures are parts of a volume, other files are whole ones. */
static enum oct_err check_inputs(const struct oct_surfaces_job *s, struct oct_error *err)
{
    for (unsigned i = 0; s->job.n_inputs > 1 && i < s->job.n_inputs; i++)
        if (is_whole(s->job.inputs[i]))
            return oct_fail(err, OCT_E_CONFIG, "%s and %u more: one volume at a time",
                            s->job.inputs[i], s->job.n_inputs - 1);
    return OCT_OK;
}

/* What a volume says beside its pictures. */
static enum oct_err look_at_file(struct oct_surfaces_job *s, struct oct_error *err)
{
    struct oct_volume_info info;
    const char *path = s->job.inputs[0], *dot = strrchr(path, '.');
    const bool is_volume = is_whole(path), is_npy = dot && strcasecmp(dot, ".npy") == 0;
    s->is_turned = is_given(s, "depth") ? s->choice.depth == 1 : !is_volume && !is_npy;
    s->um[0] = NAN;
    s->eye = s->choice.eye;
    if (!is_volume)
        return OCT_OK;
    const enum oct_err e = oct_volume_look(path, &info, err);
    if (e)
        return e;
    s->um[0] = info.um[0];
    s->is_linear = info.is_linear;
    memcpy(s->circle.first_mm, info.circle_mm, sizeof(info.circle_mm));
    s->circle.is_own = info.is_own_circle;
    if (!s->is_turned)
        s->device = (struct oct_surfaces_device){info.format, info.n_layers, info.layers, NULL};
    if (s->eye == OCT_SURFACES_EYE_UNKNOWN)
        s->eye = strcmp(info.eye, "OD") == 0   ? OCT_SURFACES_EYE_OD
                 : strcmp(info.eye, "OS") == 0 ? OCT_SURFACES_EYE_OS
                                               : OCT_SURFACES_EYE_UNKNOWN;
    return OCT_OK;
}

static enum oct_err look_at_first(struct oct_surfaces_job *s, struct oct_error *err)
{
    struct oct_pictures_info info;
    struct oct_picture first = {0};
    const uint64_t n = oct_pictures_count(s->pictures);
    if (n < 1 || n > INT32_MAX)
        return oct_fail(err, OCT_E_FORMAT, "%s: has no B-scans, or more than are read",
                        s->job.inputs[0]);
    const enum oct_err e = oct_pictures_read(s->pictures, 0, &first, &info, err);
    if (e)
        return e;
    s->n_bscans = (uint32_t)n;
    s->n_lines = s->is_turned ? first.width : first.height;
    s->depth = s->is_turned ? first.height : first.width;
    s->is_db = info.is_db || s->is_linear;
    s->um[1] = info.um[s->is_turned];
    s->um[2] = info.um[!s->is_turned];
    oct_picture_finish(&first);
    for (int axis = 0; axis < 3; axis++) {
        const double um = s->um_given[axis] > 0 ? s->um_given[axis] : s->um[axis];
        const bool is_length = axis > 0 || !oct_surfaces_is_circle(s);
        s->um[axis] = um > 0 && is_length ? um : NAN;
    }
    return OCT_OK;
}

/* What was asked for needs what is not known. */
static enum oct_err check_given(const struct oct_surfaces_job *s, struct oct_error *err)
{
    const double *at = s->grid.fovea_px;
    if (s->given.fovea &&
        !(at[0] >= 0 && at[1] >= 0 && at[0] <= s->n_bscans - 1.0 && at[1] <= s->n_lines - 1.0))
        return oct_fail(err, OCT_E_CONFIG,
                        "--fovea %s: B-scans are 0 to %u, A-lines 0 to %u (BSCAN,LINE)",
                        s->given.fovea, s->n_bscans - 1, s->n_lines - 1);
    if (s->given.fovea && !oct_surfaces_has_um(s))
        return oct_fail(err, OCT_E_CONFIG,
                        "--fovea: the spacing is not known; --pixel-um gives it");
    for (unsigned i = 0; i < s->n_slabs; i++)
        if (isnan(s->um[2]) &&
            (s->slab[i].slab.first.offset_um != 0 || s->slab[i].slab.last.offset_um != 0))
            return oct_fail(err, OCT_E_CONFIG,
                            "--slab %s: the depth of a pixel is not known; --pixel-um gives it",
                            s->slab[i].given);
    return OCT_OK;
}

static enum oct_err read_device(struct oct_surfaces_job *s, struct oct_error *err)
{
    struct oct_surfaces_device *d = &s->device;
    const size_t m = s->n_lines;
    enum oct_err e = OCT_OK;
    d->n = d->n < OCT_SURFACES_MOST_DEVICE ? d->n : OCT_SURFACES_MOST_DEVICE;
    d->px = oct_alloc((size_t)d->n * s->n_bscans * m + 1, sizeof(*d->px));
    for (unsigned k = 0; k < d->n; k++)
        for (uint32_t b = 0; b < s->n_bscans && !e; b++)
            e = oct_pictures_layer(s->pictures, b, k, d->px + ((size_t)k * s->n_bscans + b) * m,
                                   err);
    return e;
}

enum oct_err oct_surfaces_open(struct oct_surfaces_job *s, struct oct_error *err)
{
    static const char *const names[] = {"", "OD", "OS"};
    const struct oct_pictures_options options = {.what = OCT_PICTURES_FRAMES};
    enum oct_err e = check_inputs(s, err);
    if (!e)
        e = oct_pictures_open(&s->pictures, s->job.inputs, s->job.n_inputs, &options, err);
    if (!e)
        e = look_at_file(s, err);
    if (!e)
        e = look_at_first(s, err);
    if (!e)
        e = read_device(s, err);
    if (!e)
        e = check_given(s, err);
    if (!e)
        e = oct_picture_skip(s->given.skip, s->n_bscans, &s->skip, err);
    s->eye_name = names[s->eye];
    return e;
}

/* ---- the layers ---- */

static enum oct_err read_bscan(void *context, uint32_t b, struct oct_picture *picture,
                               struct oct_error *err)
{
    return oct_surfaces_read(context, b, picture, err);
}

static void show_progress(void *context, uint64_t done, uint64_t all)
{
    oct_progress_show(&((struct oct_surfaces_job *)context)->job.progress, done, all);
}

static enum oct_err trace_layers(struct oct_surfaces_job *s, struct oct_error *err)
{
    struct oct_surfaces_setup setup = {.n_lines = s->n_lines,
                                       .depth = s->depth,
                                       .bscan_um = s->um[0],
                                       .align = s->is_aligned,
                                       .skip = s->skip,
                                       .workers = s->job.workers,
                                       .backend = s->job.backend,
                                       .gpus = s->job.gpus};
    const struct oct_volume_source source = {
        .context = s, .n_bscans = s->n_bscans, .read = read_bscan, .progress = show_progress};
    oct_trace_params_default(&setup.trace);
    setup.trace.depth_um = s->um[2];
    setup.trace.line_um = s->um[1];
    setup.trace.unit_db = s->is_db ? 1 : NAN; /* clean_picture */
    return oct_surfaces_find(&setup, &source, &s->surfaces, err);
}

static enum oct_err denoise_layer(struct oct_surfaces_job *s, unsigned k, struct oct_error *err)
{
    const size_t n = (size_t)s->n_bscans * s->n_lines;
    struct oct_surfaces_layer *layer = &s->layer[k];
    float *positions = s->surfaces.position[k];
    const struct oct_denoise_setup setup = {.n_bscans = s->n_bscans,
                                            .n_lines = s->n_lines,
                                            .params = s->params,
                                            .alike = oct_trace_alike(k, s->um[1]),
                                            .strength =
                                                isnan(s->choice.strength) ? 0 : s->choice.strength,
                                            .backend = s->job.backend,
                                            .gpus = s->job.gpus,
                                            .workers = s->job.workers};
    enum oct_err e = oct_job_go_on(&s->job, err);
    layer->found = oct_alloc(n, sizeof(*layer->found));
    memcpy(layer->found, positions, n * sizeof(*layer->found));
    if (!e && s->is_denoised)
        e = oct_denoise_heights(&setup, positions, s->is_aligned ? s->surfaces.shift_px : NULL,
                                &layer->denoised, err);
    for (size_t i = 0; i < n; i++)
        layer->n_known += isfinite(positions[i]) != 0;
    layer->share = (double)layer->n_known / (double)n;
    return e;
}

/* A layer of another run of octctl surfaces; what it cannot be is not known. */
static enum oct_err load_layer(struct oct_surfaces_job *s, const char *path, unsigned k,
                               struct oct_error *err)
{
    const size_t n = (size_t)s->n_bscans * s->n_lines;
    struct oct_volume_array *array;
    char name[64];
    snprintf(name, sizeof(name), "/layers/%s", oct_layer_names[k]);
    enum oct_err e = oct_volume_array_open(&array, path, name, err);
    if (e)
        return e;
    const struct oct_volume_array_facts *f = oct_volume_array_facts(array);
    float *positions = s->surfaces.position[k] = oct_alloc(n, sizeof(*positions));
    if (f->rank != 2 || f->dims[0] != s->n_bscans || f->dims[1] != s->n_lines)
        e = oct_fail(err, OCT_E_FORMAT, "%s: %s is not of %u B-scans of %u A-lines, as %s", path,
                     name, s->n_bscans, s->n_lines, s->job.inputs[0]);
    e = e ? e : oct_volume_array_read(array, positions, err);
    oct_volume_array_close(array);
    for (size_t i = 0; i < n && !e; i++) {
        positions[i] = fabsf(positions[i]) <= (float)s->depth ? positions[i] : NAN;
        s->layer[k].n_known += isfinite(positions[i]) != 0;
    }
    s->layer[k].share = (double)s->layer[k].n_known / (double)n;
    return e;
}

enum oct_err oct_surfaces_load_layers(struct oct_surfaces_job *s, const char *path,
                                      const struct oct_contents *contents, struct oct_error *err)
{
    enum oct_err e = OCT_OK;
    const double *at = contents->root.fovea_px;
    s->surfaces.fate = oct_alloc(s->n_bscans, sizeof(*s->surfaces.fate));
    for (unsigned k = 0; k < OCT_N_LAYERS; k++)
        s->layer[k].is_asked = false;
    for (unsigned i = 0; i < contents->n && !e; i++)
        for (unsigned k = 0; k < OCT_N_LAYERS && !e; k++) {
            const char *name = contents->datasets[i].name.text;
            if (strncmp(name, "/layers/", 8) != 0 || strcmp(name + 8, oct_layer_names[k]) != 0)
                continue;
            s->layer[k].is_asked = true;
            e = load_layer(s, path, k, err);
        }
    s->choice.superior = strcmp(contents->root.superior, superior_names[1]) == 0;
    s->grid.is_given = at[0] >= 0 && at[1] >= 0 && at[0] < s->n_bscans && at[1] < s->n_lines;
    if (s->grid.is_given)
        memcpy(s->grid.fovea_px, at, sizeof(s->grid.fovea_px));
    return e;
}

/* ---- what follows from them ---- */

static void measure_grid(struct oct_surfaces_job *s)
{
    struct oct_surfaces_grid *g = &s->grid;
    const struct oct_surfaces_thickness *retina = &s->thickness[0];
    const bool is_last = s->choice.superior == 1, has_eye = s->eye != OCT_SURFACES_EYE_UNKNOWN;
    if (!oct_surfaces_has_um(s) || !retina->map)
        return;
    g->has_fovea =
        g->is_given || oct_thickness_fovea(retina->map, s->n_bscans, s->n_lines, s->um[0], s->um[1],
                                           &g->fovea_px[0], &g->fovea_px[1]);
    if (!g->has_fovea || retina->n_known == 0)
        return;
    const struct oct_etdrs_setup setup = {.n_bscans = s->n_bscans,
                                          .n_lines = s->n_lines,
                                          .bscan_um = s->um[0],
                                          .line_um = s->um[1],
                                          .fovea_b = g->fovea_px[0],
                                          .fovea_j = g->fovea_px[1],
                                          .has_sides = has_eye,
                                          .nasal_is_right = s->eye == OCT_SURFACES_EYE_OD,
                                          .superior_is_last = is_last};
    for (unsigned i = 0; i < OCT_SURFACES_N_THICKNESSES; i++)
        if (s->thickness[i].map)
            oct_etdrs_measure(&setup, s->thickness[i].map, &s->thickness[i].etdrs);
    g->is_measured = true;
    g->fovea = g->is_given ? "given" : "found";
    g->eye = s->eye_name;
    g->superior = superior_names[is_last];
    g->nasal = !has_eye                        ? "unknown; stands for larger A-lines"
               : s->eye == OCT_SURFACES_EYE_OD ? "larger A-lines"
                                               : "smaller A-lines";
}

/* What the device found of the nerve fibres of the first B-scan, um; NULL: it says nothing. */
static float *device_fibres(const struct oct_surfaces_job *s)
{
    const struct oct_surfaces_device *d = &s->device;
    const float *ilm = NULL, *nfl = NULL;
    for (unsigned k = 0; k < d->n; k++) {
        const float *px = d->px + (size_t)k * s->n_bscans * s->n_lines;
        ilm = strcmp(d->layers[k], "ilm") == 0 ? px : ilm;
        nfl = strcmp(d->layers[k], "nfl") == 0 ? px : nfl;
    }
    float *um = ilm && nfl ? oct_alloc(s->n_lines, sizeof(*um)) : NULL;
    if (um)
        oct_thickness_map(ilm, nfl, s->n_lines, s->um[2], um);
    return um;
}

bool oct_surfaces_is_circle(const struct oct_surfaces_job *s)
{
    return s->circle.first_mm[0] != 0 || s->circle.first_mm[1] != 0;
}

/* The way of the circle; --superior last says that octd's goes upwards from the right. */
static struct oct_tsnit_setup circle_setup(const struct oct_surfaces_job *s)
{
    const double *mm = s->circle.first_mm;
    const bool is_right = s->eye == OCT_SURFACES_EYE_OD, goes_up = s->choice.superior == 1;
    return (struct oct_tsnit_setup){.n_lines = s->n_lines,
                                    .first = {mm[0], s->circle.is_own && goes_up ? -mm[1] : mm[1]},
                                    .nasal_is_right = is_right,
                                    .falls = s->circle.is_own && is_right == goes_up};
}

/* The nerve fibres at the A-lines of the circle: what is known of them, in the mean. */
static float *circle_fibres(const struct oct_surfaces_job *s)
{
    const float *map = s->thickness[1].map;
    const uint32_t n_bscans = s->circle.is_own ? s->n_bscans : 1, m = s->n_lines;
    float *um = oct_alloc(m, sizeof(*um));
    for (uint32_t j = 0; j < m; j++) {
        double sum = 0, n = 0;
        for (uint32_t b = 0; b < n_bscans; b++) {
            const double here = (double)map[(size_t)b * m + j];
            sum += isfinite(here) ? here : 0;
            n += isfinite(here) != 0;
        }
        um[j] = n > 0 ? (float)(sum / n) : NAN;
    }
    return um;
}

static void measure_circle(struct oct_surfaces_job *s)
{
    struct oct_surfaces_circle *c = &s->circle;
    const struct oct_surfaces_thickness *rnfl = &s->thickness[1];
    if (!oct_surfaces_is_circle(s) || !rnfl->map || isnan(s->um[2]) ||
        s->eye == OCT_SURFACES_EYE_UNKNOWN)
        return;
    c->setup = circle_setup(s);
    float *device = device_fibres(s), *found = circle_fibres(s);
    c->angle_deg = oct_alloc(s->n_lines, sizeof(double));
    c->rnfl_um = oct_alloc(s->n_lines, sizeof(double));
    if (device) {
        c->device_um = oct_alloc(s->n_lines, sizeof(double));
        oct_tsnit_measure(&c->setup, device, c->angle_deg, c->device_um, &c->tsnit);
    }
    oct_tsnit_measure(&c->setup, found, c->angle_deg, c->rnfl_um, &c->tsnit);
    c->is_measured = true;
    free(found);
    free(device);
}

/* NaN: none is known. */
static double mean_of(const float *values, size_t n)
{
    double sum = 0, n_known = 0;
    for (size_t i = 0; i < n; i++)
        if (isfinite(values[i])) {
            sum += (double)values[i];
            n_known++;
        }
    return n_known > 0 ? sum / n_known : NAN;
}

/* Borders that were denoised by themselves keep their order. */
static void put_in_order(struct oct_surfaces_job *s)
{
    float *position[OCT_N_LAYERS];
    for (unsigned k = 0; k < OCT_N_LAYERS; k++)
        position[k] = s->layer[k].is_asked ? s->surfaces.position[k] : NULL;
    oct_surfaces_put_in_order(position, (size_t)s->n_bscans * s->n_lines);
}

static enum oct_err measure_thickness(struct oct_surfaces_job *s, unsigned i, struct oct_error *err)
{
    static const double shares[2] = {0.01, 0.99};
    const size_t n = (size_t)s->n_bscans * s->n_lines;
    struct oct_surfaces_thickness *t = &s->thickness[i];
    double limits[2] = {NAN, NAN};
    *t = thicknesses[i];
    if (!s->layer[t->upper].is_asked || !s->layer[t->lower].is_asked)
        return OCT_OK;
    t->unit = isnan(s->um[2]) ? "px" : "um";
    t->map = oct_alloc(n, sizeof(*t->map));
    t->n_known = oct_thickness_map(s->surfaces.position[t->upper], s->surfaces.position[t->lower],
                                   n, isnan(s->um[2]) ? 1 : s->um[2], t->map);
    t->known = (double)t->n_known / (double)n;
    t->mean = mean_of(t->map, n);
    const enum oct_err e = oct_plot_shares(t->map, n, shares, 2, limits, err);
    t->p1 = limits[0];
    t->p99 = limits[1];
    return e;
}

/* One B-scan into all slabs. */
static enum oct_err project_bscan(struct oct_surfaces_job *s, uint32_t b, struct oct_error *err)
{
    const size_t row = (size_t)b * s->n_lines, n = (size_t)s->n_lines * s->depth;
    const float *position[OCT_N_LAYERS];
    struct oct_picture picture;
    const enum oct_err e = oct_surfaces_read(s, b, &picture, err);
    if (e)
        return e;
    for (unsigned k = 0; k < OCT_N_LAYERS; k++)
        position[k] = s->surfaces.position[k] + row;
    for (size_t i = 0; i < n; i++)
        if (!oct_picture_is_valid(&picture, i))
            picture.pixels[i] = NAN;
    for (unsigned i = 0; i < s->n_slabs; i++)
        oct_slab_project(&s->slab[i].slab, picture.pixels, s->n_lines, s->depth, s->um[2], position,
                         s->slab[i].values + row);
    oct_picture_finish(&picture);
    return OCT_OK;
}

enum oct_err oct_surfaces_find_layers(struct oct_surfaces_job *s, struct oct_error *err)
{
    enum oct_err e = trace_layers(s, err);
    for (unsigned k = 0; k < OCT_N_LAYERS && !e; k++)
        e = s->layer[k].is_asked ? denoise_layer(s, k, err) : OCT_OK;
    s->running = s->layer[s->first].denoised.running;
    if (!e)
        put_in_order(s);
    return e;
}

enum oct_err oct_surfaces_measure(struct oct_surfaces_job *s, struct oct_error *err)
{
    enum oct_err e = OCT_OK;
    for (unsigned i = 0; i < OCT_SURFACES_N_THICKNESSES && !e; i++)
        e = measure_thickness(s, i, err);
    if (!e) {
        measure_grid(s);
        measure_circle(s);
    }
    return e;
}

static enum oct_err find_all(void *job, struct oct_error *err)
{
    struct oct_surfaces_job *s = job;
    enum oct_err e = oct_surfaces_open(s, err);
    e = e ? e : oct_surfaces_find_layers(s, err);
    e = e ? e : oct_surfaces_measure(s, err);
    for (unsigned i = 0; i < s->n_slabs; i++)
        s->slab[i].values = oct_alloc((size_t)s->n_bscans * s->n_lines, sizeof(float));
    for (uint32_t b = 0; s->n_slabs > 0 && b < s->n_bscans && !e; b++)
        e = project_bscan(s, b, err);
    if (!e)
        oct_progress_end(&s->job.progress, s->n_bscans, s->n_bscans);
    return e;
}

/* ---- what is said ---- */

/* Of thickness and grid; nothing where no layer was found, of which a line says so. */
static void warn_of_grid(const struct oct_surfaces_job *s)
{
    if (s->thickness[0].n_known == 0)
        return;
    if (oct_surfaces_has_um(s) && !s->grid.has_fovea)
        fprintf(stderr,
                "octctl %s: no pit of a fovea in view: no ETDRS means; --fovea BSCAN,LINE says "
                "where it "
                "is\n",
                s->job.name);
    if (s->grid.is_measured && s->eye == OCT_SURFACES_EYE_UNKNOWN)
        fprintf(stderr,
                "octctl %s: which eye is not known: nasal stands for larger A-lines; --eye says "
                "it\n",
                s->job.name);
}

static void warn_of_layers(const struct oct_surfaces_job *s)
{
    char missing[96] = "";
    bool any = false;
    for (unsigned k = 0; k < OCT_N_LAYERS; k++) {
        any |= s->layer[k].is_asked && s->layer[k].n_known > 0;
        if (s->layer[k].is_asked && s->layer[k].n_known == 0)
            snprintf(missing + strlen(missing), sizeof(missing) - strlen(missing), "%s%s",
                     missing[0] ? ", " : "", s->layer[k].label);
    }
    if (missing[0])
        fprintf(stderr, "octctl %s: no %s found: %s hides it; all is NaN\n", s->job.name,
                any ? missing : "layer",
                any ? "noise, or what the eye has there," : "no retina is in view, or noise");
}

/* Of slabs of layers that were found. */
static void warn_of_slabs(const struct oct_surfaces_job *s)
{
    const size_t n = (size_t)s->n_bscans * s->n_lines;
    for (unsigned i = 0; i < s->n_slabs; i++) {
        const struct oct_slab *slab = &s->slab[i].slab;
        if (s->layer[slab->first.layer].n_known > 0 && s->layer[slab->last.layer].n_known > 0 &&
            isnan(mean_of(s->slab[i].values, n)))
            fprintf(stderr,
                    "octctl %s: --slab %s: in no A-line it begins above its end and lies in the "
                    "picture; all of it is NaN\n",
                    s->job.name, s->slab[i].given);
    }
}

static void warn_of_all(const void *job)
{
    static const char *const axes[3] = {"B-scans", "A-lines", "depths"};
    const struct oct_surfaces_job *s = job;
    char unknown[64] = "";
    for (int i = 2; i >= 0; i--)
        if (isnan(s->um[i]) && !(i == 0 && oct_surfaces_is_circle(s)))
            snprintf(unknown + strlen(unknown), sizeof(unknown) - strlen(unknown), "%s%s",
                     unknown[0] ? ", " : "", axes[i]);
    if (unknown[0])
        fprintf(stderr, "octctl %s: the spacing of %s is not known: %s; --pixel-um gives it\n",
                s->job.name, unknown,
                isnan(s->um[2])
                    ? "thickness is in pixels, and layers are sought as in pixels of 2.5 um"
                    : "no ETDRS means");
    warn_of_layers(s);
    warn_of_slabs(s);
    warn_of_grid(s);
    if (oct_surfaces_is_circle(s) && s->eye == OCT_SURFACES_EYE_UNKNOWN)
        fprintf(stderr,
                "octctl %s: which eye is not known: no nerve fibres over the angle; --eye says "
                "it\n",
                s->job.name);
}

/* ---- the command ---- */

static void list_pictures(struct oct_surfaces_job *s)
{
    const char *png = s->given.png;
    s->png_bscans = oct_job_beside(png, ".png", "bscans");
    s->png_relief = oct_job_beside(png, ".png", "relief");
    oct_job_add(&s->job, png, oct_surfaces_draw_map, s);
    oct_job_add(&s->job, s->png_bscans, oct_surfaces_draw_bscans, s);
    oct_job_add(&s->job, s->png_relief, oct_surfaces_draw_relief, s);
    for (unsigned i = 0; i < s->n_slabs; i++) {
        char *what = oct_alloc_text("slab-%s", s->slab[i].name);
        for (char *at = what; *at; at++)
            *at = *at == ':' ? '_' : *at;
        s->slab[i].png = oct_job_beside(png, ".png", what);
        oct_job_add(&s->job, s->slab[i].png, oct_surfaces_draw_slab, &s->slab[i]);
        free(what);
    }
}

static enum oct_err list_files(void *job, struct oct_error *err)
{
    struct oct_surfaces_job *s = job;
    (void)err;
    oct_job_add(&s->job, s->job.out, oct_surfaces_write_h5, s);
    oct_job_add(&s->job, s->given.csv, oct_surfaces_write_csv, s);
    oct_job_add(&s->job, s->given.phi, oct_surfaces_write_phi, s);
    if (s->given.png)
        list_pictures(s);
    return OCT_OK;
}

void oct_surfaces_close(void *job)
{
    oct_pictures_close(((struct oct_surfaces_job *)job)->pictures);
}

#define AT(member) .at = offsetof(struct oct_surfaces_options, member)
static const struct oct_option options[] = {
    {"--align", NULL, "B-scans are first registered along the depth (default)", OCT_OPTION_FLAG,
     AT(align)},
    {"--no-align", NULL, "they are taken as they lie", OCT_OPTION_FLAG, AT(no_align)},
    {"--layers", "NAME[,NAME...]", "of ilm, rnfl_gcl, ipl_inl, inl_opl, opl_onl, is_os, rpe (all)",
     OCT_OPTION_TEXT, AT(layers)},
    {.kind = OCT_OPTION_PARAMS, .params = &choices, AT(choice)},
    {"--skip", "N,N-M", "leave out these B-scans", OCT_OPTION_TEXT, AT(skip)},
    {"--pixel-um", "D[,L[,B]]",
     "micrometres of tissue of a depth pixel, from A-line to A-line and from\n"
     "B-scan to B-scan, instead of what the file says",
     OCT_OPTION_TEXT, AT(pixel_um)},
    {"--slab", "A:B",
     "en face, from one depth to another, as ilm+10:ilm+40 (um), or by name:\n"
     "superficial, deep, avascular, choriocapillaris, retina, rnfl, gcl+ipl; repeatable",
     OCT_OPTION_LIST, AT(slabs)},
    {"--eye", "OD|OS", "right or left, instead of what the recording says", OCT_OPTION_TEXT,
     AT(eye), .words = "OD OS"},
    {"--fovea", "BSCAN,LINE", "of the fovea, counted from 0 (where the pit is)", OCT_OPTION_TEXT,
     AT(fovea)},
    {"--mask", "FILE", "in place of IN: a volume of 0 and others, or of signed distances",
     OCT_OPTION_TEXT, AT(mask)},
    {"--csv", "FILE", "a row an A-line", OCT_OPTION_TEXT, AT(csv)},
    {"--png", "FILE",
     "the thickness, of a circle over the angle, FILE-bscans.png,\n"
     "FILE-relief.png and FILE-slab-A_B.png",
     OCT_OPTION_TEXT, AT(png)},
    {"--phi", "FILE.h5", "the level set of the first layer, for tests", OCT_OPTION_TEXT, AT(phi)},
    OCT_JOB_JSON(struct oct_surfaces_options, job),
    OCT_JOB_FORCE(struct oct_surfaces_options, job),
    {NULL},
};

static const struct oct_job_ops surfaces_job = {
    .command = &oct_command_surfaces,
    .bytes = sizeof(struct oct_surfaces_job),
    .values = offsetof(struct oct_surfaces_job, given),
    .options = offsetof(struct oct_surfaces_job, given.job),
    .progress = "B-scans",
    .init = oct_surfaces_init,
    .read = oct_surfaces_read_options,
    .list = list_files,
    .work = find_all,
    .warn = warn_of_all,
    .print = oct_surfaces_print,
    .json = oct_surfaces_json,
    .finish = oct_surfaces_close,
};

static int run_surfaces(struct oct_config *config, int argc, char **argv)
{
    return oct_job_run(&surfaces_job, config, argc, argv);
}

const struct oct_command oct_command_surfaces = {
    .name = "surfaces",
    .usage = "IN... OUT.h5",
    .keys = "",
    .help = "finds layers of the retina, and measures their thickness",
    .options = options,
    .n_least = 1,
    .n_most = INT_MAX,
    .too_few = "which volume, and which OUT.h5?",
    .run = run_surfaces,
};
