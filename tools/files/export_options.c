#include "tools/files/export_options.h"

#include "tools/commands.h"
#include "tools/picture_options.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MOST_UM 1e6

static int read_dataset(const struct oct_export_given *g, struct oct_export_wish *w,
                        const char *name)
{
    static const char *const names[] = {"bscans", "spectra", "enface"};
    w->dataset = NULL;
    if (g->dataset) {
        const char *text = g->dataset + (g->dataset[0] == '/');
        const int i = oct_option_word(text, names, 3);
        w->dataset = i < 0 ? text : names[i];
        if (i < 0 && (strncmp(text, "analysis/", 9) != 0 || !text[9] || strchr(text + 9, '/')))
            return oct_command_misuse(name,
                                      "--dataset %s: it is bscans, spectra, enface or "
                                      "analysis/NAME",
                                      g->dataset);
    }
    if (g->slab && (!w->dataset || strcmp(w->dataset, "enface") != 0))
        return oct_command_misuse(name, "--slab is of --dataset enface");
    w->has_slab = g->slab != NULL;
    if (g->slab && !oct_picture_option_slab(g->slab, &w->slab_first, &w->slab_last))
        return oct_command_misuse(name, "--slab needs depth pixels, FIRST:LAST, LAST left out");
    return 0;
}

static int read_sample(const struct oct_export_given *g, struct oct_export_wish *w,
                       const char *name)
{
    static const char *const names[] = {"u8", "f32"};
    const int i = oct_option_word(g->sample, names, 2);
    if (i < 0)
        return oct_command_misuse(name, "--sample %s: it is u8 or f32", g->sample);
    w->has_sample = g->sample != NULL;
    w->sample = i ? OCT_EXPORT_F32 : OCT_EXPORT_U8;
    return 0;
}

/* "MIN:MAX". */
static bool read_range(const char *text, double *lo, double *hi)
{
    char first[64];
    const size_t n = strcspn(text, ":");
    if (n >= sizeof(first) || text[n] != ':')
        return false;
    memcpy(first, text, n);
    first[n] = '\0';
    return oct_option_double(first, lo) && oct_option_double(text + n + 1, hi) && *lo < *hi;
}

/* "B,L,D", each a number above 0, or "-". */
static bool read_spacing(const char *text, double um[3])
{
    for (unsigned i = 0; i < 3; i++) {
        char part[64];
        const size_t n = strcspn(text, ",");
        if (n >= sizeof(part) || (text[n] == ',') != (i < 2))
            return false;
        memcpy(part, text, n);
        part[n] = '\0';
        if (strcmp(part, "-") != 0 &&
            (!oct_option_double(part, &um[i]) || !(um[i] > 0) || um[i] > MOST_UM))
            return false;
        text += n + 1;
    }
    return true;
}

int oct_export_given_read(const struct oct_export_given *given, struct oct_export_wish *wish,
                          const char *name)
{
    *wish = (struct oct_export_wish){.um = {NAN, NAN, NAN}, .with_pseudonym = given->pseudonym};
    int status = read_dataset(given, wish, name);
    status = status ? status : read_sample(given, wish, name);
    if (status)
        return status;
    if (given->eye && strcmp(given->eye, "OD") != 0 && strcmp(given->eye, "OS") != 0)
        return oct_command_misuse(name, "--eye %s: it is OD or OS", given->eye);
    wish->eye = given->eye;
    wish->has_range = given->range != NULL;
    if (given->range && !read_range(given->range, &wish->lo, &wish->hi))
        return oct_command_misuse(name, "--range needs two numbers, MIN:MAX, MIN the smaller one");
    wish->has_bscans = given->bscans != NULL;
    if (given->bscans &&
        !oct_picture_option_slab(given->bscans, &wish->first_bscan, &wish->last_bscan))
        return oct_command_misuse(name, "--bscans needs numbers from 0 on, A:B, B left out");
    if (given->spacing && !read_spacing(given->spacing, wish->um))
        return oct_command_misuse(name, "--spacing needs three lengths above 0 um, B,L,D: from "
                                        "B-scan to B-scan, A-line to A-line, depth pixel to depth "
                                        "pixel; - is as the file says");
    return 0;
}

#define AT(member) .at = offsetof(struct oct_export_given, member)
const struct oct_option oct_export_options_table[] = {
    {"--to", "FORMAT",
     "ome-tiff, nifti, dicom, npy, mat or png (by the end of OUT: .ome.tif,\n"
     ".nii.gz, .nii, .dcm, .npy, .mat, .png, or / of a folder of PNG files)",
     OCT_OPTION_TEXT, AT(to), .words = OCT_WORDS_FORMATS},
    {"--dataset", "NAME",
     "bscans, spectra, enface or analysis/NAME (bscans of a volume file,\n"
     "spectra of any other recording, which has nothing else)",
     OCT_OPTION_TEXT, AT(dataset), .words = "bscans spectra enface"},
    {"--slab", "FIRST:LAST",
     "of enface: the mean of these depth pixels, LAST left out (what\n"
     "analysis.enface_projection of the recording says)",
     OCT_OPTION_TEXT, AT(slab)},
    {"--bscans", "A:B", "these B-scans, from 0, B left out (all)", OCT_OPTION_TEXT, AT(bscans)},
    {"--sample", "TYPE", "u8 with the same limits everywhere, or f32, dB (as in the file)",
     OCT_OPTION_TEXT, AT(sample), .words = "u8 f32"},
    {"--range", "MIN:MAX", "what 0 and 255 of u8 stand for (the limits of all B-scans together)",
     OCT_OPTION_TEXT, AT(range)},
    {"--spacing", "B,L,D",
     "micrometres from B-scan to B-scan, from A-line to A-line and from depth\n"
     "pixel to depth pixel; -: as the file says",
     OCT_OPTION_TEXT, AT(spacing)},
    {"--eye", "E", "OD or OS, of a recording that does not say it", OCT_OPTION_TEXT, AT(eye),
     .words = "OD OS"},
    {"--pseudonym", NULL, "say the pseudonym too, in OME-TIFF, MATLAB and PNG; DICOM always does",
     OCT_OPTION_FLAG, AT(pseudonym)},
    {"--json", NULL, "print what was written as JSON", OCT_OPTION_FLAG, AT(json)},
    {"--force", NULL, "replace OUT if it exists, once the new one is whole", OCT_OPTION_FLAG,
     AT(force)},
    {NULL},
};
