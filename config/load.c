/* Reading INI text through inih.
 *
 * inih cuts a line that does not fit its buffer and reads the rest as a line of its own, joins
 * indented lines to the key above, and skips what stands behind a section's ']'. So it gets its
 * lines from a reader that counts them, drops indentation, and refuses what inih would mistake. */
#include "config/config.h"

#include "config/keys.h"

#include <errno.h>
#include <fcntl.h>
#include <ini.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_FILE_BYTES (1u << 20)
#define MAX_LINE_BYTES (OCT_CONFIG_STRING_BYTES + 128) /* the longest value and its key */
#define WHY_BYTES 256

/* Debian's inih takes its limit (200 bytes otherwise) from this variable; other builds fix it when
 * they are compiled and lack it. */
extern int ini_max_line __attribute__((weak));

struct loading {
    const char *bytes; /* not yet read */
    size_t n_bytes;
    unsigned line; /* number of the line last read */
    bool failed;   /* the first fault ends the reading */
    const char *name, *folder;
    struct oct_config *config;
    uint32_t source;                          /* the file's, in the config */
    unsigned first_line[OCT_CONFIG_MAX_ROWS]; /* where a key was given; 0: not yet */
    struct oct_error *err;
};

static void fail_line(struct loading *load, const char *what)
{
    if (!load->failed)
        oct_fail(load->err, OCT_E_CONFIG, "%s:%u: %s", oct_key_shown_name(load->name), load->line,
                 what);
    load->failed = true;
}

static void fail_key(struct loading *load, const char *section, const char *name, const char *why)
{
    if (!load->failed)
        oct_fail(load->err, OCT_E_CONFIG, "%s:%u: [%s] %.60s: %s", oct_key_shown_name(load->name),
                 load->line, section, name, why);
    load->failed = true;
}

/* inih reports a section only with its first key, and skips the text behind the ']'. */
static void check_section(struct loading *load, const char *line, size_t n_line)
{
    char section[64], why[WHY_BYTES];
    const char *end = memchr(line, ']', n_line);
    if (!end)
        return; /* inih reports the missing ']' */
    size_t rest = (size_t)(line + n_line - end - 1);
    for (end++; rest > 0 && (*end == ' ' || *end == '\t'); end++)
        rest--;
    if (rest > 0 && *end != ';' && *end != '#') {
        fail_line(load, "nothing may follow a section's ']': start a new line");
        return;
    }
    int n_section = (int)strcspn(line + 1, "]");
    snprintf(section, sizeof(section), "%.*s", n_section, line + 1);
    if (!oct_key_section_meaning(section)) {
        oct_key_explain_unknown(section, "", why, sizeof(why));
        oct_fail(load->err, OCT_E_CONFIG, "%s:%u: [%s]: %s", oct_key_shown_name(load->name),
                 load->line, section, why);
        load->failed = true;
    }
}

/* Refuses lines that inih would misread. `line` has no indentation. */
static void check_line(struct loading *load, const char *line, size_t n_line, size_t limit)
{
    char why[80];
    if (memchr(line, '\0', n_line)) {
        fail_line(load, "holds a zero byte: this is not a text file");
    } else if (n_line > limit) {
        snprintf(why, sizeof(why), "is %zu bytes long: at most %zu are allowed", n_line, limit);
        fail_line(load, why);
    } else if (line[0] == '[') {
        check_section(load, line, n_line);
    }
}

/* fgets for inih: the next line without indentation; NULL at the end or after a fault. */
static char *read_line(char *buffer, int buffer_bytes, void *stream)
{
    struct loading *load = stream;
    if (load->n_bytes == 0 || load->failed || buffer_bytes < 4)
        return NULL;
    const char *line = load->bytes;
    const char *newline = memchr(line, '\n', load->n_bytes);
    size_t n_line = newline ? (size_t)(newline - line) : load->n_bytes;
    size_t n_taken = newline ? n_line + 1 : n_line;
    load->bytes += n_taken;
    load->n_bytes -= n_taken;
    load->line++;
    while (n_line > 0 && line[n_line - 1] == '\r')
        n_line--;
    while (n_line > 0 && (*line == ' ' || *line == '\t')) {
        line++;
        n_line--;
    }
    if (n_line == 0 || *line == ';' || *line == '#')
        n_line = 0; /* blank, or a comment of any length */
    else
        check_line(load, line, n_line, (size_t)buffer_bytes - 3);
    if (load->failed)
        return NULL;
    memcpy(buffer, line, n_line);
    buffer[n_line] = '\n';
    buffer[n_line + 1] = '\0';
    return buffer;
}

/* 1: taken, 0: a fault (inih's own convention). */
static int take_value(void *user, const char *section, const char *name, const char *value)
{
    struct loading *load = user;
    char why[WHY_BYTES], joined[2 * OCT_CONFIG_STRING_BYTES];
    if (load->failed)
        return 0;
    if (!section[0]) {
        fail_line(load, "a key stands before the first [section]");
        return 0;
    }
    struct oct_key key;
    if (!oct_key_find(section, name, &key)) {
        oct_key_explain_unknown(section, name, why, sizeof(why));
        fail_key(load, section, name, why);
        return 0;
    }
    unsigned *first = &load->first_line[key.index];
    if (*first) {
        snprintf(why, sizeof(why), "given twice, first on line %u: keep one", *first);
        fail_key(load, section, name, why);
        return 0;
    }
    *first = load->line;
    if (key.param->type == OCT_PARAM_PATH && value[0] && value[0] != '/' && load->folder[0]) {
        oct_key_join_path(load->folder, value, joined, sizeof(joined));
        value = joined; /* too long a path, cut or not, is refused below by its length */
    }
    if (!oct_key_parse(&key, load->config, value, why, sizeof(why))) {
        fail_key(load, section, name, why);
        return 0;
    }
    oct_key_mark(load->config, &key, load->source, load->line);
    return 1;
}

/* A global of inih: recordings may be read in several threads. */
static void allow_long_lines(void)
{
    if (&ini_max_line && ini_max_line < MAX_LINE_BYTES)
        ini_max_line = MAX_LINE_BYTES;
}

static enum oct_err load_bytes(struct oct_config *config, const char *bytes, size_t n_bytes,
                               const char *name, const char *folder, struct oct_error *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct oct_config changed = *config;
    struct loading load = {
        .bytes = bytes,
        .n_bytes = n_bytes,
        .name = name,
        .folder = folder,
        .config = &changed,
        .source = oct_key_add_source(&changed, name),
        .err = err,
    };
    if (n_bytes >= 3 && !memcmp(bytes, "\xef\xbb\xbf", 3)) { /* a byte order mark */
        load.bytes += 3;
        load.n_bytes -= 3;
    }
    pthread_once(&once, allow_long_lines);
    int status = ini_parse_stream(read_line, &load, take_value, &load);
    if (status < 0)
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: no memory to read it", oct_key_shown_name(name));
    if (status > 0 && (!load.failed || (unsigned)status < load.line)) {
        load.failed = false;
        load.line = (unsigned)status;
        fail_line(&load, "is neither 'key = value' nor a [section]: start a comment with ';'");
    }
    if (load.failed)
        return OCT_E_CONFIG;
    *config = changed;
    return OCT_OK;
}

/* Reads the whole of path, malloc'd. Every fault of the file is OCT_E_CONFIG. */
static enum oct_err read_file(const char *path, char **bytes, size_t *n_bytes,
                              struct oct_error *err)
{
    enum oct_err code = OCT_OK;
    struct stat about;
    size_t used = 0;
    char *buffer = NULL;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &about)) {
        code = oct_fail_errno(err, OCT_E_CONFIG, errno, "%s: cannot read the configuration",
                              oct_key_shown_name(path));
        goto fail;
    }
    if (S_ISDIR(about.st_mode)) {
        code = oct_fail(err, OCT_E_CONFIG, "%s: is a folder, not a configuration file",
                        oct_key_shown_name(path));
        goto fail;
    }
    buffer = malloc(MAX_FILE_BYTES + 1);
    if (!buffer) {
        code = oct_fail(err, OCT_E_NO_MEMORY, "%s: no memory to read it", oct_key_shown_name(path));
        goto fail;
    }
    for (;;) {
        ssize_t n = read(fd, buffer + used, MAX_FILE_BYTES + 1 - used);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            code = oct_fail_errno(err, OCT_E_CONFIG, errno, "%s: cannot read the configuration",
                                  oct_key_shown_name(path));
            goto fail;
        }
        used += (size_t)n;
        if (n == 0 || used > MAX_FILE_BYTES)
            break;
    }
    if (used > MAX_FILE_BYTES) {
        code = oct_fail(err, OCT_E_CONFIG, "%s: is larger than 1 MiB: not a configuration file",
                        oct_key_shown_name(path));
        goto fail;
    }
    close(fd);
    *bytes = buffer;
    *n_bytes = used;
    return OCT_OK;
fail:
    free(buffer);
    if (fd >= 0)
        close(fd);
    return code;
}

enum oct_err oct_config_load(struct oct_config *config, const char *path, struct oct_error *err)
{
    char folder[OCT_CONFIG_STRING_BYTES] = "";
    char *bytes = NULL;
    size_t n_bytes = 0;
    const char *slash = strrchr(path, '/');
    size_t n_folder = slash ? (size_t)(slash - path) + (slash == path) : 0;
    if (n_folder >= sizeof(folder))
        return oct_fail(err, OCT_E_CONFIG, "%s: its path is longer than %zu bytes",
                        oct_key_shown_name(path), sizeof(folder) - 1);
    memcpy(folder, path, n_folder);
    folder[n_folder] = '\0';
    enum oct_err code = read_file(path, &bytes, &n_bytes, err);
    if (code)
        return code;
    code = load_bytes(config, bytes, n_bytes, path, folder, err);
    free(bytes);
    return code;
}

enum oct_err oct_config_load_text(struct oct_config *config, const char *text, const char *name,
                                  struct oct_error *err)
{
    return load_bytes(config, text, strlen(text), name, "", err);
}
