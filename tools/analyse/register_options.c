/* The texts of register's options. */
#define _DEFAULT_SOURCE /* strsep */
#include "tools/analyse/register.h"
#include "tools/options.h"
#include "tools/picture_options.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum oct_err wrong(const char *option, const char *needs, struct oct_error *err)
{
    return oct_fail(err, OCT_E_CONFIG, "%s needs %s; see octctl register --help", option, needs);
}

/* The place of text in names; -1: none of them. NULL: the first. */
static int place_of(const char *text, const char *const *names)
{
    for (int i = 0; names[i]; i++)
        if (!text || strcmp(text, names[i]) == 0)
            return i;
    return -1;
}

/* "a:b:c": n whole numbers with `separator` between. */
static bool read_numbers(const char *text, char separator, unsigned n, uint32_t *numbers)
{
    for (unsigned i = 0; i < n; i++) {
        char *end;
        errno = 0;
        unsigned long value = strtoul(text, &end, 10);
        if (*text < '0' || *text > '9' || errno || value > UINT32_MAX ||
            *end != (i + 1 < n ? separator : '\0'))
            return false;
        numbers[i] = (uint32_t)value;
        text = end + 1;
    }
    return true;
}

static enum oct_err read_reference(struct oct_register *r)
{
    const char *text = r->options.reference;
    uint64_t number;
    if (!text || strcmp(text, "auto") == 0)
        return OCT_OK;
    if (oct_option_u64(text, &number)) {
        r->setup.has_number = true;
        r->setup.number = number;
    } else {
        r->reference_path = text;
    }
    return OCT_OK;
}

static enum oct_err read_um(struct oct_register *r, struct oct_error *err)
{
    const char *text = r->options.um;
    if (!text)
        return OCT_OK;
    if (!oct_picture_option_um(text, r->pictures.um))
        return wrong("--um", "DX or DX,DY, micrometres a pixel above 0", err);
    return OCT_OK;
}

static enum oct_err read_sizes(struct oct_register *r, struct oct_error *err)
{
    const struct oct_register_options *o = &r->options;
    struct oct_sequence_setup *s = &r->setup;
    uint32_t pair[2] = {OCT_STRIP_ROWS, OCT_STRIP_STEP};
    if (o->strip && (!read_numbers(o->strip, ':', 2, pair) || pair[0] < 2 || pair[1] < 1))
        return wrong("--strip", "LINES:STEP, as 32:8, at least 2:1", err);
    s->rows = pair[0];
    s->step = pair[1];
    if (o->roi && (!read_numbers(o->roi, ':', 4, s->roi) || s->roi[2] == 0 || s->roi[3] == 0))
        return wrong("--roi", "X:Y:WIDTH:HEIGHT in pixels", err);
    if (o->en_face) {
        if (!oct_picture_option_slab(o->en_face, &r->pictures.slab_first, &r->pictures.slab_last))
            return wrong("--en-face", "two depths, A:B, A below B", err);
        r->pictures.what = OCT_PICTURES_EN_FACE;
    }
    return OCT_OK;
}

static enum oct_err read_names(struct oct_register *r, struct oct_error *err)
{
    static const char *const models[] = {"rigid", "strips", "none", NULL};
    static const char *const crops[] = {"all", "common", NULL};
    static const char *const domains[] = {"linear", "db", NULL};
    static const char *const samplings[] = {"linear", "cubic", "none", NULL};
    const struct oct_register_options *o = &r->options;
    int model = place_of(o->model, models), crop = place_of(o->crop, crops);
    int domain = place_of(o->domain, domains), sampling = place_of(o->interpolation, samplings);
    if (model < 0)
        return wrong("--model", "rigid, strips or none", err);
    if (crop < 0)
        return wrong("--crop", "all or common", err);
    if (domain < 0)
        return wrong("--domain", "linear or db", err);
    if (sampling < 0)
        return wrong("--interpolation", "linear, cubic or none", err);
    static const enum oct_sequence_model of_name[] = {OCT_SEQUENCE_RIGID, OCT_SEQUENCE_STRIPS,
                                                      OCT_SEQUENCE_NONE};
    static const enum oct_resampling of_sampling[] = {OCT_RESAMPLING_LINEAR, OCT_RESAMPLING_CUBIC,
                                                      OCT_RESAMPLING_NONE};
    r->setup.model = o->shifts ? OCT_SEQUENCE_GIVEN : of_name[model];
    r->setup.common = crop == 1;
    r->is_linear = domain == 0;
    r->setup.interpolation = of_sampling[sampling];
    return OCT_OK;
}

enum oct_err oct_register_understand(struct oct_register *r, struct oct_error *err)
{
    const struct oct_register_options *o = &r->options;
    struct oct_sequence_setup *s = &r->setup;
    enum oct_err e = read_names(r, err);
    if (!e)
        e = read_sizes(r, err);
    if (!e)
        e = read_um(r, err);
    if (!e)
        e = read_reference(r);
    if (e)
        return e;
    if (o->shifts && o->shifts_only)
        return oct_fail(err, OCT_E_CONFIG, "--shifts and --shifts-only leave nothing to do");
    if (o->stack && o->shifts_only)
        return oct_fail(err, OCT_E_CONFIG, "--stack and --shifts-only exclude one another");
    bool by_strips = s->model == OCT_SEQUENCE_STRIPS;
    s->search = o->search && by_strips ? (uint32_t)o->search : OCT_STRIP_SEARCH;
    if (o->search && !by_strips)
        s->max_dy = s->max_dx = (uint32_t)o->search;
    s->far = o->far ? (uint32_t)o->far : OCT_STRIP_FAR;
    s->min_score = o->min_score == o->min_score ? o->min_score : OCT_STRIP_MIN_SCORE;
    s->n_passes = (unsigned)o->passes;
    s->backend = oct_config_backend_names[r->config->pipeline.backend];
    s->gpus = r->config->pipeline.gpus;
    r->pictures.mask_path = o->mask;
    r->pictures.has_invalid = o->invalid == o->invalid;
    r->pictures.invalid = o->invalid;
    s->masked = o->mask || r->pictures.has_invalid;
    return OCT_OK;
}

/* ---- options that are not for all ---- */

#define FRAMES OCT_REGISTER_FRAMES
#define VOLUME OCT_REGISTER_VOLUME
#define MOSAIC OCT_REGISTER_MOSAIC
#define STRIPS (1u << OCT_SEQUENCE_STRIPS)
#define REGISTERS (STRIPS | 1u << OCT_SEQUENCE_RIGID)
#define NOT_GIVEN (REGISTERS | 1u << OCT_SEQUENCE_NONE)
#define ANY (NOT_GIVEN | 1u << OCT_SEQUENCE_GIVEN)

enum oct_err oct_register_check_options(const struct oct_register *r,
                                        const struct oct_register_mode *mode, struct oct_error *err)
{
    static const char *const models[] = {"--model rigid", "--model strips", "--model none",
                                         "--shifts"};
    const struct oct_register_options *o = &r->options;
    const struct {
        const char *name;
        bool is_given;
        unsigned modes, models; /* the models matter to frames alone */
    } rows[] = {
        {"--model", o->model != NULL, FRAMES, NOT_GIVEN},
        {"--reference", o->reference != NULL, FRAMES, REGISTERS},
        {"--strip", o->strip != NULL, FRAMES, STRIPS},
        {"--far", o->far != 0, FRAMES, STRIPS},
        {"--search", o->search != 0, FRAMES | VOLUME, REGISTERS},
        {"--min-score", !isnan(o->min_score), FRAMES | VOLUME | MOSAIC, REGISTERS},
        {"--passes 2", o->passes > 1, FRAMES, REGISTERS},
        {"--roi", o->roi != NULL, FRAMES, REGISTERS},
        {"--skip", o->skip != NULL, FRAMES | VOLUME, ANY},
        {"--shifts", o->shifts != NULL, FRAMES | VOLUME, ANY},
        {"--crop", o->crop != NULL, FRAMES | VOLUME, ANY},
        {"--domain", o->domain != NULL, FRAMES | VOLUME, ANY},
        {"--interpolation", o->interpolation != NULL, FRAMES | VOLUME, ANY},
        {"--en-face", o->en_face != NULL, FRAMES | MOSAIC, ANY},
        {"--lateral", o->lateral, VOLUME, ANY},
        {"--stack", o->stack, FRAMES, ANY},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].is_given && !(rows[i].modes & mode->use))
            return oct_fail(err, OCT_E_CONFIG, "--as %s takes no %s", mode->name, rows[i].name);
        if (rows[i].is_given && mode->use == FRAMES && !(rows[i].models >> r->setup.model & 1))
            return oct_fail(err, OCT_E_CONFIG, "%s takes no %s", models[r->setup.model],
                            rows[i].name);
    }
    if (mode->use == MOSAIC && o->shifts_only && o->png)
        return oct_fail(err, OCT_E_CONFIG,
                        "--as mosaic: --png shows the average, which --shifts-only leaves out");
    return OCT_OK;
}

/* ---- --skip ---- */

enum oct_err oct_register_read_skip(const char *text, uint64_t n_frames, uint8_t **skip,
                                    struct oct_error *err)
{
    *skip = NULL;
    if (!text)
        return OCT_OK;
    *skip = calloc(n_frames + 1, 1);
    if (!*skip)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for --skip");
    for (const char *at = text; *at;) {
        char *end;
        uint64_t first = strtoull(at, &end, 10), last = first;
        bool is_good = *at >= '0' && *at <= '9';
        if (*end == '-') {
            at = end + 1;
            is_good = is_good && *at >= '0' && *at <= '9';
            last = strtoull(at, &end, 10);
        }
        is_good = is_good && first <= last && (*end == '\0' || (*end == ',' && end[1]));
        if (!is_good)
            return wrong("--skip", "numbers of frames, as 3,7-9", err);
        if (last >= n_frames)
            return oct_fail(err, OCT_E_ARG, "--skip %llu: there are %llu frames, from 0",
                            (unsigned long long)last, (unsigned long long)n_frames);
        memset(*skip + first, 1, last - first + 1);
        at = *end ? end + 1 : end;
    }
    return OCT_OK;
}

/* ---- --shifts ---- */

enum { COLUMN_FRAME, COLUMN_LINE, COLUMN_DY, COLUMN_DX, N_COLUMNS };

struct table {
    const char *path;
    unsigned row; /* from 1, with the header */
    int columns[N_COLUMNS];
};

static enum oct_err read_header(struct table *t, char *line, struct oct_error *err)
{
    static const char *const names[N_COLUMNS] = {"frame", "line", "dy_px", "dx_px"};
    int column = 0;
    for (unsigned i = 0; i < N_COLUMNS; i++)
        t->columns[i] = -1;
    for (char *rest = line, *cell; (cell = strsep(&rest, ",")); column++)
        for (unsigned i = 0; i < N_COLUMNS; i++)
            if (strcmp(cell, names[i]) == 0)
                t->columns[i] = column;
    for (unsigned i = 0; i < N_COLUMNS; i++)
        if (t->columns[i] < 0 && i != COLUMN_LINE)
            return oct_fail(err, OCT_E_FORMAT,
                            "%s: no column %s: a table as --csv writes it is needed", t->path,
                            names[i]);
    return OCT_OK;
}

/* The four numbers of a row; a line that is empty or has no column is 0. */
static enum oct_err read_row(const struct table *t, char *line, double values[N_COLUMNS],
                             bool *has_shift, struct oct_error *err)
{
    int column = 0;
    unsigned n = 0;
    values[COLUMN_LINE] = 0;
    *has_shift = true;
    for (char *rest = line, *cell; (cell = strsep(&rest, ",")); column++)
        for (unsigned i = 0; i < N_COLUMNS; i++) {
            if (t->columns[i] != column)
                continue;
            n++;
            if (!*cell && i >= COLUMN_DY)
                *has_shift = false;
            else if (*cell && !oct_option_double(cell, &values[i]))
                return oct_fail(err, OCT_E_FORMAT, "%s:%u: '%s' is no number", t->path, t->row,
                                cell);
        }
    if (n < (t->columns[COLUMN_LINE] < 0 ? N_COLUMNS - 1 : N_COLUMNS))
        return oct_fail(err, OCT_E_FORMAT, "%s:%u: too few cells", t->path, t->row);
    return OCT_OK;
}

static enum oct_err read_rows(struct table *t, FILE *file, uint64_t n_frames, uint32_t height,
                              struct oct_strip *shifts, struct oct_error *err)
{
    char *line = NULL;
    size_t room = 0;
    enum oct_err e = OCT_OK;
    while (!e && getline(&line, &room, file) >= 0) {
        double v[N_COLUMNS] = {0};
        bool has_shift;
        line[strcspn(line, "\r\n")] = '\0';
        if (t->row++ == 0) {
            e = read_header(t, line, err);
            continue;
        }
        e = read_row(t, line, v, &has_shift, err);
        if (e || !has_shift)
            continue;
        if (v[0] < 0 || v[0] >= (double)n_frames || v[1] < 0 || v[1] >= height ||
            v[0] != floor(v[0]) || v[1] != floor(v[1]) || !(v[2] > -1e5 && v[2] < 1e5) ||
            !(v[3] > -1e5 && v[3] < 1e5))
            e = oct_fail(err, OCT_E_FORMAT,
                         "%s:%u: frame %.10g, line %.10g: there are %llu frames of %u lines",
                         t->path, t->row, v[0], v[1], (unsigned long long)n_frames, height);
        else
            shifts[(uint64_t)v[0] * height + (uint32_t)v[1]] =
                (struct oct_strip){(float)v[2], (float)v[3], 1, true};
    }
    free(line);
    return e;
}

/* Lines between those that are given. */
static void fill_frame(struct oct_strip *shifts, uint32_t height)
{
    int64_t before = -1;
    for (uint32_t y = 0; y <= height; y++) {
        if (y < height && !shifts[y].ok)
            continue;
        if (before < 0 && y == height)
            return; /* none is given */
        for (int64_t k = before + 1; k < y; k++) {
            const struct oct_strip *a = &shifts[before < 0 ? y : before];
            const struct oct_strip *b = &shifts[y == height ? before : y];
            float part = a == b ? 0 : (float)(k - before) / (float)(y - before);
            shifts[k] = (struct oct_strip){a->dy + part * (b->dy - a->dy),
                                           a->dx + part * (b->dx - a->dx), 1, true};
        }
        before = y;
    }
}

enum oct_err oct_register_read_shifts(const char *path, uint64_t n_frames, uint32_t height,
                                      struct oct_strip **shifts, struct oct_error *err)
{
    struct table table = {.path = path};
    FILE *file = fopen(path, "re");
    *shifts = NULL;
    if (!file)
        return oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot be read", path);
    enum oct_err e = OCT_OK;
    *shifts = calloc(n_frames * height, sizeof(**shifts));
    if (!*shifts)
        e = oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the shifts of %llu frames",
                     (unsigned long long)n_frames);
    if (!e)
        e = read_rows(&table, file, n_frames, height, *shifts, err);
    if (!e && ferror(file))
        e = oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot be read", path);
    if (!e && table.row < 2)
        e = oct_fail(err, OCT_E_FORMAT, "%s: no shifts in it", path);
    for (uint64_t i = 0; i < n_frames && !e; i++)
        fill_frame(*shifts + i * height, height);
    fclose(file);
    return e;
}
