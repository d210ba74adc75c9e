#include "viewer/settings.h"

#include "analysis/param.h"
#include "formats/whole_file.h"

#include <errno.h>
#include <fcntl.h>
#include <ini.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const arrangements[] = {"one", "two", "four", NULL};
static const char *const fits[] = {"fill", "micrometres", "pixels", NULL};
static const char *const lights[] = {"100", "50", "25", NULL};
static const char *const ranges[] = {"published", "auto", "manual", NULL};

/* In the order in which they are written; a divider's 0 is the standard one. */
static const struct oct_param rows[] = {
#define PLAIN(name, member) OCT_PARAM(name, struct oct_view_model, member)
#define CHOICE(name, member, words) OCT_PARAM_CHOICE(name, struct oct_view_model, member, words)
    {CHOICE("layout", settings.arrangement, arrangements)},
    {CHOICE("fit", settings.fit, fits)},
    {PLAIN("operator", settings.operators)},
    {PLAIN("average", settings.average)},
    {PLAIN("average_of", settings.average_of), .most = OCT_VIEW_MOST_AVERAGE},
    {PLAIN("guide", settings.guide)},
    {PLAIN("details", settings.details)},
    {PLAIN("divider_beside", settings.divider.beside), .most = OCT_VIEW_MOST_SHARE},
    {PLAIN("divider_stacked", settings.divider.stacked), .most = OCT_VIEW_MOST_SHARE},
    {CHOICE("light", settings.light, lights)},
    {PLAIN("sound", settings.sound)},
    {PLAIN("all_layers", settings.all_layers)},
    {CHOICE("colours", contrast.palette, oct_view_palette_names)},
    {CHOICE("contrast", contrast.range, ranges)},
    {PLAIN("black", contrast.lo), .least = -1e30, .most = 1e30},
    {PLAIN("white", contrast.hi), .least = -1e30, .most = 1e30},
    {PLAIN("gamma", contrast.gamma), .least = OCT_VIEW_LEAST_GAMMA, .most = OCT_VIEW_MOST_GAMMA},
};
enum { N_ROWS = sizeof(rows) / sizeof(rows[0]) };

/* Those, and then what draws the overlays. False: there are no more. */
static bool row_at(size_t i, struct oct_param *row)
{
    if (i < N_ROWS) {
        *row = rows[i];
        return true;
    }
    if (i - N_ROWS >= oct_view_n_overlays)
        return false;
    const struct oct_view_overlay *o = oct_view_overlays[i - N_ROWS];
    *row = (struct oct_param){.name = o->setting_name ? o->setting_name : "",
                              .type = OCT_PARAM_BOOL,
                              .at = offsetof(struct oct_view_model, settings) + o->setting};
    return true;
}

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

struct reading {
    struct oct_view_model *model;
    const char *path;
    struct oct_error *err;
    bool wrong;
};

/* Of keys that nobody knows any more there is nothing to be said. */
static int read_line(void *context, const char *section, const char *key, const char *text)
{
    struct reading *r = context;
    struct oct_param row;
    char why[256];
    (void)section;
    for (size_t i = 0; row_at(i, &row); i++)
        if (strcmp(row.name, key) == 0 &&
            !oct_param_parse(&row, r->model, text, why, sizeof(why))) {
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
    int line = ini_parse_file(file, read_line, &reading);
    fclose(file);
    if (!(model->contrast.hi > model->contrast.lo))
        oct_view_contrast_set_range(&model->contrast, OCT_CONTRAST_PUBLISHED);
    if (line != 0 && !reading.wrong)
        return oct_fail(err, OCT_E_FORMAT, "%s:%d: this line is no key=value; passed over", path,
                        line);
    return reading.wrong ? OCT_E_FORMAT : OCT_OK;
}

static bool write_all(const struct oct_view_model *model, const char *path)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
    struct oct_param row;
    char text[64];
    if (!file) {
        if (fd >= 0)
            close(fd);
        return false;
    }
    fprintf(file, "; What octview remembers. It is written anew whenever octview ends.\n[view]\n");
    for (size_t i = 0; row_at(i, &row); i++) {
        oct_param_format(&row, model, text, sizeof(text));
        if (row.name[0])
            fprintf(file, "%s = %s\n", row.name, text);
    }
    const bool written = !ferror(file);
    return fclose(file) == 0 && written;
}

enum oct_err oct_view_settings_save(const struct oct_view_model *model, const char *path,
                                    struct oct_error *err)
{
    struct oct_whole_file file;
    char part[PATH_MAX];
    enum oct_err code;
    for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/'))
        if (snprintf(part, sizeof(part), "%.*s", (int)(slash - path), path) < (int)sizeof(part))
            mkdir(part, 0700);
    if ((code = oct_whole_file_init(&file, path, true, err)))
        return code;
    if (write_all(model, file.work))
        return oct_whole_file_publish(&file, err);
    code = oct_fail_errno(err, OCT_E_IO, errno, "cannot write %s", path);
    oct_whole_file_discard(&file);
    return code;
}
