#define _GNU_SOURCE /* strdup, realpath */
#include "pipeline/record/settings.h"

#include "pipeline/base/folder.h"
#include "pipeline/base/utf8.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

void oct_record_settings_free(struct oct_record_settings_copy *copy)
{
    free(copy->strings);
    *copy = (struct oct_record_settings_copy){0};
}

enum oct_err oct_record_settings_copy(struct oct_record_settings_copy *copy,
                                      const struct oct_record_settings *from, struct oct_error *err)
{
    struct oct_record_settings *s = &copy->settings;
    const char **texts[] = {&s->directory, &s->config_text, &s->eye, &s->pseudonym};
    const size_t n_texts = sizeof(texts) / sizeof(texts[0]);
    size_t bytes = 0;
    *copy = (struct oct_record_settings_copy){.settings = *from};
    for (size_t i = 0; i < n_texts; i++)
        bytes += strlen(*texts[i]) + 1;
    char *next = copy->strings = malloc(bytes);
    if (!next) {
        oct_record_settings_free(copy);
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a recording");
    }
    for (size_t i = 0; i < n_texts; i++) {
        size_t n = strlen(*texts[i]) + 1;
        *texts[i] = memcpy(next, *texts[i], n);
        next += n;
    }
    return OCT_OK;
}

enum oct_err oct_record_settings_resolve(struct oct_record_settings_copy *copy,
                                         struct oct_error *err)
{
    struct oct_record_settings resolved = copy->settings;
    struct oct_record_settings_copy with_name;
    char *real = realpath(resolved.directory, NULL);
    if (!real)
        return oct_fail_errno(err, OCT_E_IO, errno, "record.directory: %s", resolved.directory);
    resolved.directory = real;
    enum oct_err e = oct_record_settings_copy(&with_name, &resolved, err);
    free(real);
    if (e)
        return e;
    oct_record_settings_free(copy);
    *copy = with_name;
    return OCT_OK;
}

static enum oct_err check_directory(const char *directory, struct oct_error *err)
{
    struct stat st;
    if (mkdir(directory, 0777) == 0) {
        enum oct_err e = oct_folder_sync_parent(directory, err);
        if (e)
            return e;
    } else if (errno != EEXIST) {
        return oct_fail_errno(err, OCT_E_IO, errno, "record.directory: %s cannot be made",
                              directory);
    }
    if (stat(directory, &st) != 0)
        return oct_fail_errno(err, OCT_E_IO, errno, "record.directory: %s", directory);
    if (!S_ISDIR(st.st_mode))
        return oct_fail(err, OCT_E_IO, "record.directory: %s is not a folder", directory);
    if (access(directory, W_OK | X_OK) != 0)
        return oct_fail_errno(err, OCT_E_IO, errno, "record.directory: %s cannot be written",
                              directory);
    return OCT_OK;
}

double oct_record_bscan_bytes(const struct oct_record_settings *from, const struct oct_geometry *g,
                              double results_bytes)
{
    double bytes = 0;
    if (from->spectra)
        bytes += (double)oct_geometry_spectra_bytes(g);
    if (from->bscans)
        bytes += (double)oct_geometry_image_bytes(g);
    if (from->bscans && from->has_complex)
        bytes += (double)oct_geometry_complex_bytes(g);
    return bytes > 0 ? bytes + results_bytes / g->n_bscans : 0;
}

enum oct_err oct_record_settings_check(const struct oct_record_settings *from,
                                       const struct oct_geometry *g, uint64_t n_bscans,
                                       double other_bytes, double *free_bytes,
                                       struct oct_error *err)
{
    struct statvfs fs;
    enum oct_err e = check_directory(from->directory, err);
    if (e)
        return e;
    if (statvfs(from->directory, &fs) != 0)
        return oct_fail_errno(err, OCT_E_IO, errno, "record.directory: %s", from->directory);
    double n_free = (double)fs.f_bavail * (double)fs.f_frsize;
    double wanted = oct_record_bscan_bytes(from, g, 0) * (double)n_bscans + other_bytes;
    if (free_bytes)
        *free_bytes = n_free;
    if (n_free < wanted)
        return oct_fail(err, OCT_E_NO_SPACE,
                        "record.directory: %s has %.1f MB free, but %s takes %.1f MB",
                        from->directory, n_free * 1e-6,
                        n_bscans == g->n_bscans ? "a volume" : "this recording", wanted * 1e-6);
    return OCT_OK;
}

/* Not isalnum, which depends on the locale. A character of several bytes is a letter here: the
 * configuration has no control characters. */
static bool may_be_in_name(const char *text, size_t n_bytes)
{
    return n_bytes > 1 || (*text >= 'a' && *text <= 'z') || (*text >= 'A' && *text <= 'Z') ||
           (*text >= '0' && *text <= '9');
}

/* Appends UTF-8 text to a file name, with '-' for what may not be there, and a '_'. */
static void append_word(char *name, size_t bytes, const char *text)
{
    size_t n = strlen(name), left = strlen(text), n_bytes;
    for (; left > 0 && n + 4 + 2 <= bytes; text += n_bytes, left -= n_bytes) {
        n_bytes = oct_utf8_character(text, left);
        if (n_bytes > 0 && may_be_in_name(text, n_bytes)) {
            memcpy(name + n, text, n_bytes);
            n += n_bytes;
        } else {
            name[n++] = '-';
            n_bytes = 1;
        }
    }
    name[n++] = '_';
    name[n] = '\0';
}

void oct_record_path(const struct oct_record_settings *s, const char *ending, char *path,
                     size_t bytes)
{
    char words[256] = "", stamp[32];
    struct timespec now;
    struct tm utc;

    if (s->name_has_pseudonym && *s->pseudonym)
        append_word(words, sizeof(words) - 8, s->pseudonym);
    if (*s->eye)
        append_word(words, sizeof(words), s->eye);
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    strftime(stamp, sizeof(stamp), "%Y%m%dT%H%M%S", &utc);
    snprintf(path, bytes, "%s/%s%s%03ldZ_%s.h5", s->directory, words, stamp, now.tv_nsec / 1000000,
             ending);
}

bool oct_record_name_is_safe(const char *name)
{
    size_t n = strlen(name);
    if (n == 0 || n > 100 || name[0] == '.' || name[0] == '-')
        return false;
    for (; *name; name++)
        if (!((*name >= 'a' && *name <= 'z') || (*name >= 'A' && *name <= 'Z') ||
              (*name >= '0' && *name <= '9') || strchr("._-", *name)))
            return false;
    return true;
}

void oct_record_path_named(const struct oct_record_settings *s, const char *name, char *path,
                           size_t bytes)
{
    size_t n = strlen(name);
    bool has_suffix = n > 3 && strcmp(name + n - 3, ".h5") == 0;
    snprintf(path, bytes, "%s/%s%s", s->directory, name, has_suffix ? "" : ".h5");
}

struct oct_volume_about oct_record_about(const struct oct_record_settings *s, uint16_t format,
                                         const char *engine)
{
    return (struct oct_volume_about){
        .config_text = s->config_text,
        .eye = s->eye,
        .pseudonym = s->pseudonym,
        .engine = engine,
        .width_um = s->width_um,
        .height_um = s->height_um,
        .refractive_index = s->refractive_index,
        .scan = s->scan,
        .has_complex = s->bscans && s->has_complex,
        .spectra_format = s->as_sent ? format : OCT_LINES_U16,
        .is_log = s->is_log,
        .gap_map = true,
    };
}
