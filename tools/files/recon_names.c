#include "tools/files/recon_names.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MOST_LIST_BYTES ((size_t)1 << 30)

void oct_recon_names_finish(struct oct_recon_names *names)
{
    for (unsigned i = 0; i < names->n; i++) {
        free(names->in[i]);
        free(names->out[i]);
    }
    free(names->in);
    free(names->out);
    *names = (struct oct_recon_names){0};
}

/* ---- a list in a file ---- */

/* Doubles the room as long as there is more. */
static enum oct_err read_stream(FILE *file, char **text, size_t *bytes, const char *path,
                                struct oct_error *err)
{
    size_t room = 1 << 16, n = 0;
    char *all = malloc(room);
    while (all && (n += fread(all + n, 1, room - n - 1, file)) == room - 1 &&
           room < MOST_LIST_BYTES) {
        char *more = realloc(all, room *= 2);
        if (!more)
            free(all);
        all = more;
    }
    if (!all)
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", path);
    if (ferror(file) || n == room - 1) {
        free(all);
        return oct_fail(err, OCT_E_IO, "%s: %s", path,
                        n == room - 1 ? "a list of more than 1 GB" : "cannot be read");
    }
    all[n] = '\0';
    *text = all;
    *bytes = n;
    return OCT_OK;
}

enum oct_err oct_recon_names_read(char **text, size_t *bytes, const char *path,
                                  struct oct_error *err)
{
    const bool is_stdin = strcmp(path, "-") == 0;
    FILE *file = is_stdin ? stdin : fopen(path, "re");
    *text = NULL;
    if (!file)
        return oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot be read", path);
    const enum oct_err e = read_stream(file, text, bytes, path, err);
    if (!is_stdin)
        fclose(file);
    return e;
}

static unsigned count(const char *text, size_t bytes)
{
    unsigned n = 0;
    for (size_t i = 0; i < bytes; i++)
        n += text[i] == '\0';
    return n;
}

/* ---- names ---- */

static enum oct_err add(struct oct_recon_names *names, const char *in, const char *folder,
                        struct oct_error *err)
{
    const char *slash = strrchr(in, '/'), *base = slash ? slash + 1 : in;
    const char *dot = strrchr(base, '.');
    const int n_stem = (int)(dot && dot != base ? (size_t)(dot - base) : strlen(base));
    if (n_stem == 0 || strcmp(base, ".") == 0 || strcmp(base, "..") == 0)
        return oct_fail(err, OCT_E_ARG, "'%s': names no file", in);
    if (strcmp(in, "-") == 0)
        return oct_fail(err, OCT_E_ARG,
                        "'-': a pipe has no name for its output: give one, "
                        "without --out-dir");
    const bool ends = folder[0] && folder[strlen(folder) - 1] == '/';
    const size_t n = strlen(folder) + (size_t)n_stem + 8;
    char *copy = strdup(in), *out = malloc(n);
    if (!copy || !out) {
        free(copy);
        free(out);
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the names of files");
    }
    snprintf(out, n, "%s%s%.*s.h5", folder, ends ? "" : "/", n_stem, base);
    names->in[names->n] = copy;
    names->out[names->n++] = out;
    return OCT_OK;
}

static enum oct_err add_list(struct oct_recon_names *names, const char *text, size_t bytes,
                             const char *list, const char *folder, struct oct_error *err)
{
    if (bytes > 0 && text[bytes - 1] != '\0')
        return oct_fail(err, OCT_E_FORMAT, "%s: ends within a name: each ends with a NUL byte",
                        list);
    for (size_t at = 0; at < bytes; at += strlen(text + at) + 1) {
        if (text[at] == '\0')
            return oct_fail(err, OCT_E_FORMAT, "%s: name %u is empty", list, names->n + 1);
        enum oct_err e = add(names, text + at, folder, err);
        if (e)
            return e;
    }
    return OCT_OK;
}

struct pair {
    const char *in, *out;
};

static int compare(const void *a, const void *b)
{
    return strcmp(((const struct pair *)a)->out, ((const struct pair *)b)->out);
}

/* Two recordings of one name, of different folders or formats, would have one output. */
static enum oct_err check_pairs(const struct oct_recon_names *names, struct oct_error *err)
{
    enum oct_err e = OCT_OK;
    struct pair *pairs = calloc((size_t)names->n + 1, sizeof(*pairs));
    if (!pairs)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the names of files");
    for (unsigned i = 0; i < names->n; i++)
        pairs[i] = (struct pair){names->in[i], names->out[i]};
    qsort(pairs, names->n, sizeof(*pairs), compare);
    for (unsigned i = 1; i < names->n && !e; i++)
        if (strcmp(pairs[i - 1].out, pairs[i].out) == 0)
            e = oct_fail(err, OCT_E_ARG, "%s and %s: both would become %s: give them to two runs",
                         pairs[i - 1].in, pairs[i].in, pairs[i].out);
    free(pairs);
    return e;
}

static enum oct_err add_all(struct oct_recon_names *names, const char *const *in, unsigned n,
                            const char *text, size_t bytes, const char *list, const char *folder,
                            struct oct_error *err)
{
    const size_t most = (size_t)n + count(text, bytes) + 1;
    enum oct_err e = OCT_OK;
    names->in = calloc(most, sizeof(*names->in));
    names->out = calloc(most, sizeof(*names->out));
    if (!names->in || !names->out)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the names of files");
    for (unsigned i = 0; i < n && !e; i++)
        e = add(names, in[i], folder, err);
    if (!e && list)
        e = add_list(names, text, bytes, list, folder, err);
    if (!e && names->n == 0)
        e = oct_fail(err, OCT_E_ARG, "no recording is named");
    return e ? e : check_pairs(names, err);
}

enum oct_err oct_recon_names_init(struct oct_recon_names *names, const char *const *in, unsigned n,
                                  const char *list, const char *folder, struct oct_error *err)
{
    char *text = NULL;
    size_t bytes = 0;
    *names = (struct oct_recon_names){0};
    if (list) {
        const enum oct_err e = oct_recon_names_read(&text, &bytes, list, err);
        if (e)
            return e;
    }
    const enum oct_err e = add_all(names, in, n, text, bytes, list, folder, err);
    if (e)
        oct_recon_names_finish(names);
    free(text);
    return e;
}

enum oct_err oct_recon_names_make_folder(const char *folder, struct oct_error *err)
{
    char *path = strdup(folder);
    struct stat st;
    int failed = 0;
    if (!path)
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", folder);
    for (char *slash = path; slash && *path;) {
        slash = strchr(slash + 1, '/');
        if (slash)
            *slash = '\0';
        failed = mkdir(path, 0777) != 0 && errno != EEXIST ? errno : 0;
        if (slash)
            *slash = '/';
    }
    free(path);
    if (!failed && (stat(folder, &st) != 0 || !S_ISDIR(st.st_mode)))
        failed = ENOTDIR;
    return failed ? oct_fail_errno(err, OCT_E_IO, failed, "%s: cannot make the folder", folder)
                  : OCT_OK;
}
