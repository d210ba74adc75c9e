#define _GNU_SOURCE /* mkstemp, strdup */
#include "viewer/settings.h"

#include <errno.h>
#include <ini.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const arrangements[] = {"one", "two", "four", NULL};
static const char *const fits[] = {"fill", "micrometres", "pixels", NULL};
static const char *const lights[] = {"100", "50", "25", NULL};
static const char *const ranges[] = {"published", "auto", "manual", NULL};

bool oct_view_settings_path(char *path, size_t n_bytes)
{
    const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    int n = -1;

    if (config && config[0] == '/')
        n = snprintf(path, n_bytes, "%s/octd/viewer.ini", config);
    else if (home && home[0] == '/')
        n = snprintf(path, n_bytes, "%s/.config/octd/viewer.ini", home);
    return n > 0 && (size_t)n < n_bytes;
}

/* ---- reading ---- */

static bool read_name(const char *text, const char *const names[], int *value)
{
    for (int i = 0; names[i]; i++)
        if (strcmp(names[i], text) == 0) {
            *value = i;
            return true;
        }
    return false;
}

static bool read_number(const char *text, double lo, double hi, double *value)
{
    char *end;
    double number = strtod(text, &end);

    if (end == text || *end || !(number >= lo && number <= hi))
        return false;
    *value = number;
    return true;
}

static bool read_count(const char *text, unsigned most, unsigned *value)
{
    double number;

    if (!read_number(text, 0, most, &number))
        return false;
    *value = (unsigned)number;
    return true;
}

static bool read_yes(const char *text, bool *value)
{
    static const char *const names[] = {"no", "yes", NULL};
    int number;

    if (!read_name(text, names, &number))
        return false;
    *value = number;
    return true;
}

/* 0: the standard one. */
static bool read_share(const char *text, double *share)
{
    double number;

    if (!read_number(text, 0, OCT_VIEW_MOST_SHARE, &number) ||
        (number > 0 && number < OCT_VIEW_LEAST_SHARE))
        return false;
    *share = number;
    return true;
}

static bool take(struct oct_view_model *model, const char *key, const char *text)
{
    struct oct_view_settings *s = &model->settings;
    struct oct_view_contrast *c = &model->contrast;
    int number = 0;
    bool good = true;

    if (strcmp(key, "layout") == 0 && (good = read_name(text, arrangements, &number)))
        s->arrangement = (enum oct_view_arrangement)number;
    else if (strcmp(key, "colours") == 0 &&
             (good = read_name(text, oct_view_palette_names, &number)))
        c->palette = (enum oct_view_palette)number;
    else if (strcmp(key, "contrast") == 0 && (good = read_name(text, ranges, &number)))
        c->range = (enum oct_view_range)number;
    else if (strcmp(key, "black") == 0)
        good = read_number(text, -1e30, 1e30, &c->lo);
    else if (strcmp(key, "white") == 0)
        good = read_number(text, -1e30, 1e30, &c->hi);
    else if (strcmp(key, "gamma") == 0)
        good = read_number(text, OCT_VIEW_LEAST_GAMMA, OCT_VIEW_MOST_GAMMA, &c->gamma);
    else if (strcmp(key, "fit") == 0 && (good = read_name(text, fits, &number)))
        s->fit = (enum oct_view_fit)number;
    else if (strcmp(key, "divider_beside") == 0)
        good = read_share(text, &s->divider.beside);
    else if (strcmp(key, "divider_stacked") == 0)
        good = read_share(text, &s->divider.stacked);
    else if (strcmp(key, "light") == 0 && (good = read_name(text, lights, &number)))
        s->light = (enum oct_view_light)number;
    else if (strcmp(key, "sound") == 0)
        good = read_yes(text, &s->sound);
    else if (strcmp(key, "operator") == 0)
        good = read_yes(text, &s->operators);
    else if (strcmp(key, "details") == 0)
        good = read_yes(text, &s->details);
    else if (strcmp(key, "average") == 0)
        good = read_yes(text, &s->average);
    else if (strcmp(key, "average_of") == 0)
        good = read_count(text, OCT_VIEW_MOST_AVERAGE, &s->average_of);
    else if (strcmp(key, "cells") == 0)
        good = read_yes(text, &s->cells);
    else if (strcmp(key, "layers") == 0)
        good = read_yes(text, &s->layers);
    else if (strcmp(key, "guide") == 0)
        good = read_yes(text, &s->guide);
    else if (strcmp(key, "rolloff") == 0)
        good = read_yes(text, &s->rolloff);
    return good;
}

struct reading {
    struct oct_view_model *model;
    const char *path;
    struct oct_error *err;
    bool wrong;
};

static int on_line(void *context, const char *section, const char *key, const char *text)
{
    struct reading *r = context;

    (void)section;
    if (!take(r->model, key, text)) {
        r->wrong = true;
        oct_fail(r->err, OCT_E_FORMAT, "%s: %.40s=%.40s is no value for it; left as it was",
                 r->path, key, text);
    }
    return 1;
}

enum oct_err oct_view_settings_load(struct oct_view_model *model, const char *path,
                                    struct oct_error *err)
{
    struct reading reading = {model, path, err, false};

    FILE *file = fopen(path, "r");
    if (!file)
        return errno == ENOENT ? OCT_OK
                               : oct_fail_errno(err, OCT_E_IO, errno, "cannot read %s", path);
    int line = ini_parse_file(file, on_line, &reading);
    fclose(file);
    if (!(model->contrast.hi > model->contrast.lo))
        oct_view_contrast_set_range(&model->contrast, OCT_CONTRAST_PUBLISHED);
    if (line != 0 && !reading.wrong)
        return oct_fail(err, OCT_E_FORMAT, "%s:%d: this line is no key=value; passed over", path,
                        line);
    return reading.wrong ? OCT_E_FORMAT : OCT_OK;
}

/* ---- writing ---- */

static void make_folders(const char *path)
{
    char part[PATH_MAX];

    for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/'))
        if (snprintf(part, sizeof(part), "%.*s", (int)(slash - path), path) < (int)sizeof(part))
            mkdir(part, 0700);
}

static void write_all(FILE *file, const struct oct_view_model *model)
{
    const struct oct_view_settings *s = &model->settings;
    const struct oct_view_contrast *c = &model->contrast;

    fprintf(file, "; What octview remembers. It is written anew whenever octview ends.\n[view]\n");
    fprintf(file, "layout = %s\n", arrangements[s->arrangement]);
    fprintf(file,
            "fit = %s\noperator = %s\naverage = %s\naverage_of = %u\n"
            "cells = %s\nlayers = %s\nrolloff = %s\nguide = %s\n",
            fits[s->fit], s->operators ? "yes" : "no", s->average ? "yes" : "no", s->average_of,
            s->cells ? "yes" : "no", s->layers ? "yes" : "no", s->rolloff ? "yes" : "no",
            s->guide ? "yes" : "no");
    fprintf(file, "details = %s\ndivider_beside = %.4f\ndivider_stacked = %.4f\n",
            s->details ? "yes" : "no", s->divider.beside, s->divider.stacked);
    fprintf(file, "light = %s\nsound = %s\n", lights[s->light], s->sound ? "yes" : "no");
    fprintf(file, "colours = %s\ncontrast = %s\n", oct_view_palette_names[c->palette],
            ranges[c->range]);
    fprintf(file, "black = %.9g\nwhite = %.9g\ngamma = %.6g\n", c->lo, c->hi, c->gamma);
}

enum oct_err oct_view_settings_save(const struct oct_view_model *model, const char *path,
                                    struct oct_error *err)
{
    char name[PATH_MAX];

    make_folders(path);
    if (snprintf(name, sizeof(name), "%s.XXXXXX", path) >= (int)sizeof(name))
        return oct_fail(err, OCT_E_IO, "%s: the name is too long", path);
    int fd = mkstemp(name);
    FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (!file)
        return oct_fail_errno(err, OCT_E_IO, errno, "cannot write %s", path);
    write_all(file, model);
    bool written = !ferror(file);
    written = fclose(file) == 0 && written;
    if (!written || rename(name, path) != 0) {
        int error = errno;
        unlink(name);
        return oct_fail_errno(err, OCT_E_IO, error, "cannot write %s", path);
    }
    return OCT_OK;
}
