#include "tools/picture_options.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_UM 1e9

bool oct_picture_option_um(const char *text, double um[2])
{
    char *end;
    const double dx = strtod(text, &end);
    double dy = dx;
    if (end != text && *end == ',') {
        const char *second = end + 1;
        dy = strtod(second, &end);
        if (end == second)
            return false;
    }
    if (end == text || *end)
        return false;
    um[0] = dy;
    um[1] = dx;
    return dx > 0 && dy > 0 && dx <= MOST_UM && dy <= MOST_UM;
}

/* Digits up to `end`. */
static bool read_depth(const char *text, char end, uint32_t *value, const char **behind)
{
    char *at;
    errno = 0;
    const unsigned long long number = strtoull(text, &at, 10);
    if (*text < '0' || *text > '9' || errno || number > UINT32_MAX || *at != end)
        return false;
    *value = (uint32_t)number;
    *behind = at + 1;
    return true;
}

bool oct_picture_option_slab(const char *text, uint32_t *first, uint32_t *last)
{
    return read_depth(text, ':', first, &text) && read_depth(text, '\0', last, &text) &&
           *first < *last;
}

bool oct_picture_option_pair(const char *text, double *first, double *second)
{
    char end, sign;
    return sscanf(text, "%lf%c%lf%c", first, &sign, second, &end) == 3 && sign == ':' &&
           isfinite(*first) && isfinite(*second);
}

bool oct_picture_option_has_out(int argc, char **argv)
{
    const char *dot = argc > 2 ? strrchr(argv[argc - 1], '.') : NULL;
    return dot && (strcmp(dot, ".h5") == 0 || strcmp(dot, ".hdf5") == 0);
}

void oct_picture_option_names(int argc, char **argv, const char *const **inputs, unsigned *n_inputs,
                              const char **out)
{
    const bool has_out = oct_picture_option_has_out(argc, argv);
    *inputs = (const char *const *)(argv + 1);
    *n_inputs = (unsigned)(argc - 1 - has_out);
    *out = has_out ? argv[argc - 1] : NULL;
}
