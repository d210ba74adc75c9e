#define _GNU_SOURCE /* mkstemp, strdup */
#include "viewer/settings.h"

#include <errno.h>
#include <ini.h>
#include <limits.h>
#include <stddef.h>
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

/* ---- the keys, in the order in which they are written ---- */

enum kind { NAME, YES, NUMBER, COUNT, SHARE };

static const struct key {
    const char *name;
    enum kind kind;
    size_t at;                /* in the model */
    const char *const *names; /* of NAME: an enum by its words */
    double lo, hi;            /* of numbers; a SHARE is 0, the standard one, or within them */
    int n_digits;             /* of a NUMBER */
} keys[] = {
#define SETTING(member) offsetof(struct oct_view_model, settings.member)
#define CONTRAST(member) offsetof(struct oct_view_model, contrast.member)
    {"layout", NAME, SETTING(arrangement), arrangements, 0, 0, 0},
    {"fit", NAME, SETTING(fit), fits, 0, 0, 0},
    {"operator", YES, SETTING(operators), NULL, 0, 0, 0},
    {"average", YES, SETTING(average), NULL, 0, 0, 0},
    {"average_of", COUNT, SETTING(average_of), NULL, 0, OCT_VIEW_MOST_AVERAGE, 0},
    {"guide", YES, SETTING(guide), NULL, 0, 0, 0},
    {"details", YES, SETTING(details), NULL, 0, 0, 0},
    {"divider_beside", SHARE, SETTING(divider.beside), NULL, OCT_VIEW_LEAST_SHARE,
     OCT_VIEW_MOST_SHARE, 0},
    {"divider_stacked", SHARE, SETTING(divider.stacked), NULL, OCT_VIEW_LEAST_SHARE,
     OCT_VIEW_MOST_SHARE, 0},
    {"light", NAME, SETTING(light), lights, 0, 0, 0},
    {"sound", YES, SETTING(sound), NULL, 0, 0, 0},
    {"colours", NAME, CONTRAST(palette), oct_view_palette_names, 0, 0, 0},
    {"contrast", NAME, CONTRAST(range), ranges, 0, 0, 0},
    {"black", NUMBER, CONTRAST(lo), NULL, -1e30, 1e30, 9},
    {"white", NUMBER, CONTRAST(hi), NULL, -1e30, 1e30, 9},
    {"gamma", NUMBER, CONTRAST(gamma), NULL, OCT_VIEW_LEAST_GAMMA, OCT_VIEW_MOST_GAMMA, 6},
};

static const char *const no_yes[] = {"no", "yes", NULL};

static struct key key_of(const struct oct_view_overlay *o)
{
    return (struct key){.name = o->setting_name,
                        .kind = YES,
                        .at = offsetof(struct oct_view_model, settings) + o->setting};
}

/* ---- reading ---- */

static bool read_number(const struct key *key, const char *text, double *number)
{
    char *end;

    *number = strtod(text, &end);
    return end != text && !*end &&
           ((*number >= key->lo && *number <= key->hi) || (key->kind == SHARE && *number == 0));
}

/* The index of a word; -1: it is none of them. */
static int index_of(const char *text, const char *const names[])
{
    for (int i = 0; names[i]; i++)
        if (strcmp(names[i], text) == 0)
            return i;
    return -1;
}

/* False: the text is no value of the key. */
static bool take_value(void *at, const struct key *key, const char *text)
{
    const bool is_word = key->kind == NAME || key->kind == YES;
    const int word = is_word ? index_of(text, key->kind == YES ? no_yes : key->names) : 0;
    double number = 0;

    if (word < 0 || (!is_word && !read_number(key, text, &number)))
        return false;
    switch (key->kind) {
    case NAME:
        memcpy(at, &word, sizeof(word)); /* enums are ints */
        break;
    case YES:
        *(bool *)at = word;
        break;
    case COUNT:
        *(unsigned *)at = (unsigned)number;
        break;
    case NUMBER:
    case SHARE:
        *(double *)at = number;
        break;
    }
    return true;
}

/* Of keys that nobody knows any more there is nothing to be said. */
static bool take(struct oct_view_model *model, const char *name, const char *text)
{
    bool good = true;

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        if (strcmp(keys[i].name, name) == 0)
            good = take_value((char *)model + keys[i].at, &keys[i], text);
    for (size_t i = 0; i < oct_view_n_overlays; i++) {
        const struct key key = key_of(oct_view_overlays[i]);
        if (key.name && strcmp(key.name, name) == 0)
            good = take_value((char *)model + key.at, &key, text);
    }
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

static void write_key(FILE *file, const struct oct_view_model *model, const struct key *key)
{
    const void *at = (const char *)model + key->at;
    int word = 0;

    fprintf(file, "%s = ", key->name);
    switch (key->kind) {
    case NAME:
        memcpy(&word, at, sizeof(word));
        fputs(key->names[word], file);
        break;
    case YES:
        fputs(no_yes[*(const bool *)at], file);
        break;
    case COUNT:
        fprintf(file, "%u", *(const unsigned *)at);
        break;
    case NUMBER:
        fprintf(file, "%.*g", key->n_digits, *(const double *)at);
        break;
    case SHARE:
        fprintf(file, "%.4f", *(const double *)at);
        break;
    }
    fputc('\n', file);
}

static void write_all(FILE *file, const struct oct_view_model *model)
{
    fprintf(file, "; What octview remembers. It is written anew whenever octview ends.\n[view]\n");
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        write_key(file, model, &keys[i]);
    for (size_t i = 0; i < oct_view_n_overlays; i++) {
        const struct key key = key_of(oct_view_overlays[i]);
        if (key.name)
            write_key(file, model, &key);
    }
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
