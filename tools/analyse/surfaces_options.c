#include "tools/analyse/surfaces_options.h"

#include "tools/commands.h"
#include "tools/picture_options.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

const char *const oct_surfaces_denoise_names[] = {[OCT_LEVELSET_PROFILE_LOCAL] = "local",
                                                  [OCT_LEVELSET_PROFILE_FULL] = "full",
                                                  [OCT_LEVELSET_PROFILE_PAPER] = "paper"};

/* ---- words and numbers ---- */

static int read_layers(struct oct_surfaces_given *g, const char *name)
{
    const char *at = g->layers ? g->layers : "ilm,rpe";
    do {
        const size_t n = strcspn(at, ",");
        unsigned i = 0;
        while (i < OCT_N_LAYERS &&
               (strlen(oct_layer_names[i]) != n || strncasecmp(at, oct_layer_names[i], n) != 0))
            i++;
        if (i == OCT_N_LAYERS || g->has_layer[i])
            return oct_command_misuse(name, "--layers needs ilm, rpe or both, as ilm,rpe");
        g->has_layer[i] = true;
        at += n;
    } while (*at++ == ',');
    return 0;
}

static int read_denoise(struct oct_surfaces_given *g, const char *name)
{
    static const char *const hows[] = {"local", "full", "none"};
    static const char *const profiles[] = {"octd", "paper"};
    const int how = oct_option_word(g->denoise, hows, 3),
              profile = oct_option_word(g->profile, profiles, 2);
    if (how < 0)
        return oct_command_misuse(name, "--denoise needs local, full or none");
    if (profile < 0)
        return oct_command_misuse(name, "--profile needs octd or paper");
    if (profile == 1 && g->denoise && how != 1)
        return oct_command_misuse(name, "--profile paper is of --denoise full, not %s", hows[how]);
    g->is_denoised = how != 2;
    g->levelset = profile == 1 ? OCT_LEVELSET_PROFILE_PAPER
                  : how == 1   ? OCT_LEVELSET_PROFILE_FULL
                               : OCT_LEVELSET_PROFILE_LOCAL;
    if (!g->is_denoised && !isnan(g->strength))
        return oct_command_misuse(name, "--denoise none takes no --strength");
    if (!g->is_denoised && g->steps)
        return oct_command_misuse(name, "--denoise none takes no --steps");
    if (!g->is_denoised && g->profile)
        return oct_command_misuse(name, "--denoise none takes no --profile");
    if (!g->is_denoised && g->phi)
        return oct_command_misuse(name, "--denoise none takes no --phi");
    return 0;
}

static int read_spacing(struct oct_surfaces_given *g, const char *name)
{
    static const char *const ways[] = {"right", "down"};
    const int way = oct_option_word(g->depth, ways, 2);
    if (oct_picture_pixel_um(name, g->pixel_um, 3, g->um))
        return 2;
    if (way < 0)
        return oct_command_misuse(name, "--depth needs down or right");
    g->depth_is_given = g->depth != NULL;
    g->depth_is_down = way == 1;
    return 0;
}

static int read_grid(struct oct_surfaces_given *g, const char *name)
{
    static const char *const ends[] = {"first", "last"};
    const char *eye = "";
    const int end = oct_option_word(g->superior, ends, 2);
    const bool wants_grid = g->fovea || g->eye || g->superior;
    if (oct_picture_eye(name, g->eye, false, &eye))
        return 2;
    if (end < 0)
        return oct_command_misuse(name, "--superior needs first or last, the superior B-scan");
    if (wants_grid && !oct_surfaces_given_both(g))
        return oct_command_misuse(name, "--fovea, --eye and --superior are of the thickness, which "
                                        "needs both layers");
    g->which_eye = !*eye                    ? OCT_SURFACES_EYE_UNKNOWN
                   : strcmp(eye, "OD") == 0 ? OCT_SURFACES_EYE_OD
                                            : OCT_SURFACES_EYE_OS;
    g->superior_is_last = end == 1;
    g->has_fovea = g->fovea != NULL;
    if (g->fovea && oct_option_doubles(g->fovea, g->fovea_px, 2) != 2)
        return oct_command_misuse(name, "--fovea needs a place, B-SCAN,A-LINE, counted from 0");
    return 0;
}

static int read_slabs(struct oct_surfaces_given *g, const char *name)
{
    struct oct_error err;
    for (const char **text = g->slabs; *text; text++) {
        char shortest[64], other[64];
        struct oct_slab *slab = &g->slab[g->n_slabs];
        if (g->n_slabs == OCT_SURFACES_MOST_SLABS)
            return oct_command_misuse(name, "more than %u of --slab", OCT_SURFACES_MOST_SLABS);
        if (oct_slab_parse(slab, *text, &err))
            return oct_command_misuse(name, "--slab %s", err.text);
        if (!g->has_layer[slab->first.layer] || !g->has_layer[slab->last.layer])
            return oct_command_misuse(name, "--slab %s: --layers leaves out one of them", *text);
        oct_slab_text(slab, shortest, sizeof(shortest));
        for (unsigned i = 0; i < g->n_slabs; i++) {
            oct_slab_text(&g->slab[i], other, sizeof(other));
            if (strcmp(shortest, other) == 0)
                return oct_command_misuse(name, "--slab %s: is given twice", *text);
        }
        g->n_slabs++;
    }
    return 0;
}

/* A mask is denoised as it is: it has no layers, no A-lines and no pictures. */
static int check_mask(const struct oct_surfaces_given *g, const char *name)
{
    const struct {
        const char *option;
        bool is_given;
    } useless[] = {
        {"--layers", g->layers},
        {"--align", g->align},
        {"--no-align", g->no_align},
        {"--pixel-um", g->pixel_um},
        {"--depth", g->depth},
        {"--skip", g->skip},
        {"--fovea", g->fovea},
        {"--eye", g->eye},
        {"--superior", g->superior},
        {"--slab", *g->slabs},
        {"--csv", g->csv},
        {"--png", g->png},
        {"--phi", g->phi},
        {"--strength", !isnan(g->strength)},
        {"--denoise none", !g->is_denoised},
    };
    for (size_t i = 0; g->mask && i < sizeof(useless) / sizeof(useless[0]); i++)
        if (useless[i].is_given)
            return oct_command_misuse(name, "--mask takes no %s", useless[i].option);
    return 0;
}

int oct_surfaces_given_read(struct oct_surfaces_given *given, const char *name)
{
    static int (*const readers[])(struct oct_surfaces_given *, const char *) = {
        read_layers, read_denoise, read_spacing, read_grid, read_slabs};
    int status = 0;
    if (given->align && given->no_align)
        return oct_command_misuse(name, "--align and --no-align exclude one another");
    for (size_t i = 0; i < sizeof(readers) / sizeof(readers[0]) && !status; i++)
        status = readers[i](given, name);
    return status ? status : check_mask(given, name);
}

void oct_surfaces_given_levelset(const struct oct_surfaces_given *given,
                                 struct oct_levelset_params *params)
{
    oct_levelset_params_default(params, given->levelset);
    if (given->steps)
        params->steps = (unsigned)given->steps;
}

/* ---- the table ---- */

#define AT(member) .at = offsetof(struct oct_surfaces_given, member)
const struct oct_option oct_surfaces_options[] = {
    {"--layers", "NAMES", "ilm, rpe or both (ilm,rpe)", OCT_OPTION_TEXT, AT(layers),
     .words = "ilm rpe ilm,rpe"},
    {"--align", NULL, "B-scans are first registered along the depth (default)", OCT_OPTION_FLAG,
     AT(align)},
    {"--no-align", NULL, "they are taken as they lie", OCT_OPTION_FLAG, AT(no_align)},
    {"--denoise", "HOW",
     "local (default): by what is similar within 4 voxels; full: in the\n"
     "whole surface; none",
     OCT_OPTION_TEXT, AT(denoise), .words = "local full none"},
    {"--strength", "PX", "the noise that is expected, in pixels (that of the data)",
     OCT_OPTION_NUMBER, AT(strength), .least = OCT_OPTION_ABOVE_0, .most = 100,
     .needs = "a number of pixels above 0, 100 at most"},
    {"--steps", "N", "of the denoising (2)", OCT_OPTION_COUNT, AT(steps), .least = 1, .most = 100,
     .needs = "a number from 1 to 100"},
    {"--profile", "NAME", "octd (default), or paper: full, with the step as published",
     OCT_OPTION_TEXT, AT(profile), .words = "octd paper"},
    {"--skip", "N,N-M", "leave out these B-scans", OCT_OPTION_TEXT, AT(skip)},
    {"--pixel-um", "D[,L[,B]]",
     "micrometres of tissue of a depth pixel, from A-line to A-line and from\n"
     "B-scan to B-scan, instead of what the file says",
     OCT_OPTION_TEXT, AT(pixel_um)},
    {"--depth", "WAY",
     "where the depth runs in pictures: down (default of PNG, TIFF and AVI)\n"
     "or right (of HDF5 and .npy)",
     OCT_OPTION_TEXT, AT(depth), .words = "down right"},
    {"--slab", "A:B", "en face, from one depth to another, as ilm+10:ilm+40 (um); repeatable",
     OCT_OPTION_LIST, AT(slabs)},
    {"--fovea", "B,J", "B-scan and A-line of the fovea (where the pit is)", OCT_OPTION_TEXT,
     AT(fovea)},
    {"--eye", "OD|OS", "right or left (what the recording says)", OCT_OPTION_TEXT, AT(eye),
     .words = "OD OS"},
    {"--superior", "WHICH", "the B-scan that is superior: first (default) or last", OCT_OPTION_TEXT,
     AT(superior), .words = "first last"},
    {"--mask", "FILE", "in place of IN: a volume of 0 and others, or of signed distances",
     OCT_OPTION_TEXT, AT(mask)},
    {"--csv", "FILE", "a row an A-line", OCT_OPTION_TEXT, AT(csv)},
    {"--png", "FILE", "the thickness, FILE-bscans.png, FILE-relief.png and FILE-slab-A_B.png",
     OCT_OPTION_TEXT, AT(png)},
    {"--phi", "FILE.h5", "the level set of the first layer, for tests", OCT_OPTION_TEXT, AT(phi)},
    {"--json", NULL, "the summary as JSON", OCT_OPTION_FLAG, AT(json)},
    {"--force", NULL, "replace files that exist", OCT_OPTION_FLAG, AT(force)},
    {NULL},
};
