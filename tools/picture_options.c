#include "tools/picture_options.h"

#include "tools/alloc.h"
#include "tools/commands.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_UM 1e6
#define MOST_AXES 3u

/* ---- sizes ---- */

/* Parts between commas, each a number above 0, or "-" of volumes; how many, 0: it is no such
 * list. */
static unsigned read_lengths(const char *text, unsigned most, double *um)
{
    for (unsigned n = 0; n < most; n++) {
        char part[64];
        const size_t bytes = strcspn(text, ",");
        if (bytes >= sizeof(part))
            return 0;
        memcpy(part, text, bytes);
        part[bytes] = '\0';
        if ((most < MOST_AXES || strcmp(part, "-") != 0) &&
            (!oct_option_double(part, &um[n]) || !(um[n] > 0) || um[n] > MOST_UM))
            return 0;
        if (text[bytes] == '\0')
            return n + 1;
        text += bytes + 1;
    }
    return 0;
}

int oct_picture_pixel_um(const char *command, const char *text, unsigned n_axes, double *um)
{
    static const char *const needs[] = {"D", "X[,Y]", "D[,L[,B]]"};
    double given[MOST_AXES];
    if (!text)
        return 0;
    for (unsigned i = 0; i < n_axes; i++)
        given[i] = um[n_axes - 1 - i];
    const unsigned n = read_lengths(text, n_axes, given);
    if (n == 0)
        return oct_command_misuse(command, "--pixel-um needs micrometres above 0, %s",
                                  needs[n_axes - 1]);
    if (n_axes == 2 && n == 1)
        given[1] = given[0];
    for (unsigned i = 0; i < n_axes; i++)
        um[n_axes - 1 - i] = given[i];
    return 0;
}

char *oct_picture_axes_reverse(const char *text)
{
    const char *line = strchr(text, ','), *depth = line ? strchr(line + 1, ',') : NULL;
    if (!depth || strchr(depth + 1, ','))
        return NULL;
    return oct_alloc_text("%s,%.*s,%.*s", depth + 1, (int)(depth - line - 1), line + 1,
                          (int)(line - text), text);
}

/* ---- parts ---- */

int oct_picture_slab(const char *command, const char *text, struct oct_depths *slab)
{
    return !text || oct_depths_parse(slab, text)
               ? 0
               : oct_command_misuse(command, "--slab needs %s", OCT_DEPTHS_NEED);
}

int oct_picture_slab_of_cells(const char *command, const char *text, struct oct_depths *slab)
{
    char first[64] = "";
    const size_t n = text ? strcspn(text, ":") : 0;
    double a, b;
    if (n > 0 && n < sizeof(first) && text[n] == ':') {
        memcpy(first, text, n);
        if (oct_option_double(first, &a) && oct_option_double(text + n + 1, &b) && a >= 0 &&
            a < b && b <= 1) {
            fprintf(stderr, "octctl %s: --slab %s is now --slab %g%%:%g%%\n", command, text,
                    100 * a, 100 * b);
            *slab = (struct oct_depths){{a, OCT_DEPTH_SHARE}, {b, OCT_DEPTH_SHARE}};
            return 0;
        }
    }
    return oct_picture_slab(command, text, slab);
}

/* A number from 0 on; NULL: it is none, else what follows. */
static const char *read_number(const char *text, uint64_t *number)
{
    char *end;
    *number = strtoull(text, &end, 10);
    return *text >= '0' && *text <= '9' ? end : NULL;
}

char *oct_picture_one_frame(const char *text)
{
    uint64_t n;
    return oct_option_u64(text, &n) ? oct_alloc_text("%" PRIu64 ":%" PRIu64, n, n + 1) : NULL;
}

int oct_picture_span(const char *command, const char *option, const char *text,
                     struct oct_span *span)
{
    uint64_t parts[3] = {0, 0, 1};
    const char *at = text;
    unsigned n = 0;
    for (; at && n < 3 && (at = read_number(at, &parts[n++])) && *at == ':'; at++)
        ;
    if (text && !(at && *at == '\0' && n >= 2 && parts[0] < parts[1] && parts[2] > 0 &&
                  parts[1] <= UINT32_MAX && parts[2] <= UINT32_MAX))
        return oct_command_misuse(command,
                                  "%s needs A:B or A:B:STEP, numbers from 0 on: from A to just "
                                  "before B, every STEP-th",
                                  option);
    if (text)
        *span = (struct oct_span){(uint32_t)parts[0], (uint32_t)parts[1], (uint32_t)parts[2]};
    return 0;
}

int oct_picture_frames(const char *command, const char *text, const char *slab,
                       struct oct_span *frames)
{
    if (text && slab)
        return oct_command_misuse(command, "--frames and --slab exclude one another");
    return oct_picture_span(command, "--frames", text, frames);
}

int oct_picture_roi(const char *command, const char *text, struct oct_region *roi)
{
    char why[1] = "";
    if (!text)
        return 0;
    char *now = oct_alloc_text("%s", text), *c = now;
    while ((c = strchr(c, ':')))
        *c = ',';
    const bool is_good = *text && oct_param_region.parse(NULL, now, roi, why, sizeof(why));
    if (is_good && strcmp(now, text) != 0)
        fprintf(stderr, "octctl %s: --roi %s is now --roi %s\n", command, text, now);
    free(now);
    return is_good ? 0 : oct_command_misuse(command, "--roi needs X,Y,WIDTH,HEIGHT in pixels");
}

int oct_picture_eye(const char *command, const char *text, bool may_be_none, const char **eye)
{
    static const char *const eyes[] = {"OD", "OS", "none"};
    const int i = text ? oct_option_word(text, eyes, may_be_none ? 3 : 2) : 0;
    if (i < 0)
        return oct_command_misuse(command, "--eye %s: it is OD%s", text,
                                  may_be_none ? ", OS or none" : " or OS");
    if (text)
        *eye = i == 2 ? "" : eyes[i];
    return 0;
}

enum oct_err oct_picture_skip(const char *text, uint64_t n, uint8_t **skip, struct oct_error *err)
{
    *skip = text ? oct_alloc(n + 1, 1) : NULL;
    for (const char *at = text; at && *at;) {
        uint64_t first, last;
        const char *end = read_number(at, &first);
        last = first;
        if (end && *end == '-')
            end = read_number(end + 1, &last);
        if (!end || first > last || !(*end == '\0' || (*end == ',' && end[1])))
            return oct_fail(err, OCT_E_CONFIG, "--skip needs numbers from 0 on, as 3,7-9");
        if (last >= n)
            return oct_fail(err, OCT_E_ARG,
                            "--skip %" PRIu64 ": there are %" PRIu64 " frames, from 0", last, n);
        memset(*skip + first, 1, last - first + 1);
        at = *end ? end + 1 : end;
    }
    return OCT_OK;
}

bool oct_picture_option_pair(const char *text, double *first, double *second)
{
    char end, sign;
    return sscanf(text, "%lf%c%lf%c", first, &sign, second, &end) == 3 && sign == ':' &&
           isfinite(*first) && isfinite(*second);
}

/* ---- outputs ---- */

bool oct_picture_option_has_out(int argc, char **argv)
{
    const char *dot = argc > 2 ? strrchr(argv[argc - 1], '.') : NULL;
    return dot && (strcmp(dot, ".h5") == 0 || strcmp(dot, ".hdf5") == 0);
}
