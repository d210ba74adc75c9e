#include "tools/outputs.h"

#include "formats/file_sum.h"
#include "formats/recording.h"
#include "formats/results.h"
#include "formats/whole_file.h"
#include "pipeline/base/folder.h"
#include "pipeline/volume/volume.h"
#include "tools/alloc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Others with /bscans may be results, as those of register --as volume. */
bool oct_outputs_is_recording(const char *path)
{
    struct oct_volume_reader *reader;
    if (access(path, F_OK) != 0 || oct_volume_open(&reader, path, NULL) != OCT_OK)
        return false;
    const bool is_recording =
        oct_volume_facts(reader)->n_samples > 0 || oct_volume_config_text(reader) != NULL;
    oct_volume_reader_destroy(reader);
    return is_recording;
}

/* Whether two names of files that need not exist lead to one place. */
static bool same_place(const char *a, const char *b)
{
    const char *a_slash = strrchr(a, '/'), *b_slash = strrchr(b, '/');
    struct stat a_st, b_st;
    if (strcmp(a_slash ? a_slash + 1 : a, b_slash ? b_slash + 1 : b) != 0)
        return false;
    char *a_folder = oct_folder_of(a), *b_folder = oct_folder_of(b);
    const bool same = a_folder && b_folder && stat(a_folder, &a_st) == 0 &&
                      stat(b_folder, &b_st) == 0 && a_st.st_dev == b_st.st_dev &&
                      a_st.st_ino == b_st.st_ino;
    free(a_folder);
    free(b_folder);
    return same;
}

enum oct_err oct_outputs_check(const struct oct_output_file *files, unsigned n, bool force,
                               const struct oct_input_files *read, struct oct_error *err)
{
    for (unsigned i = 0; i < n; i++) {
        const char *path = files[i].path;
        if (!path)
            continue;
        for (unsigned k = 0; k < i; k++)
            if (files[k].path && same_place(path, files[k].path))
                return oct_fail(err, OCT_E_CONFIG, "%s: is named for two outputs", path);
        enum oct_err e = oct_whole_file_may(path, force, read->inputs, read->n_inputs, err);
        if (!e)
            e = oct_whole_file_may(path, force, read->more, sizeof(read->more) / sizeof(char *),
                                   err);
        if (e)
            return e;
        if (oct_outputs_is_recording(path))
            return oct_fail(err, OCT_E_CONFIG, "%s: holds a recording; choose another output",
                            path);
    }
    return OCT_OK;
}

/* Of the message what shows the name beside a file's path, as the path. */
static void show_path(struct oct_error *err, const struct oct_whole_file *file)
{
    char *at = err ? strstr(err->text, file->work) : NULL;
    const size_t n_work = strlen(file->work), n_path = strlen(file->path);
    if (!at)
        return;
    memmove(at + n_path, at + n_work, strlen(at + n_work) + 1); /* the path is the shorter one */
    memcpy(at, file->path, n_path);
}

struct oct_outputs {
    const struct oct_output_file *files; /* [n] */
    struct oct_whole_file *whole;        /* [n]; empty: not written yet */
    unsigned n;
    bool force;
};

enum oct_err oct_outputs_begin(struct oct_outputs **outputs, const struct oct_output_file *files,
                               unsigned n, bool force, struct oct_error *err)
{
    (void)err;
    *outputs = oct_alloc(1, sizeof(**outputs));
    **outputs = (struct oct_outputs){files, oct_alloc(n, sizeof(struct oct_whole_file)), n, force};
    return OCT_OK;
}

enum oct_err oct_outputs_write_one(struct oct_outputs *outputs, unsigned i, struct oct_error *err)
{
    const struct oct_output_file *file = &outputs->files[i];
    struct oct_whole_file *whole = &outputs->whole[i];
    enum oct_err e = oct_whole_file_init_of_all(whole, file->path, outputs->force, err);
    if (e)
        return e;
    e = file->write(file->context, whole->work, outputs->force, err);
    if (e)
        show_path(err, whole);
    return e;
}

void oct_outputs_discard(struct oct_outputs *outputs)
{
    if (!outputs)
        return;
    for (unsigned i = 0; i < outputs->n; i++)
        oct_whole_file_discard(&outputs->whole[i]);
    free(outputs->whole);
    free(outputs);
}

enum oct_err oct_outputs_publish(struct oct_outputs *outputs, struct oct_error *err)
{
    enum oct_err e = OCT_OK;
    for (unsigned i = 0; i < outputs->n && !e; i++)
        if (outputs->files[i].path && !outputs->whole[i].path)
            e = oct_outputs_write_one(outputs, i, err);
    if (!e)
        e = oct_whole_file_publish_all(outputs->whole, outputs->n, err);
    oct_outputs_discard(outputs);
    return e;
}

enum oct_err oct_outputs_print(const char *path, void (*put)(const void *context, FILE *file),
                               const void *context, struct oct_error *err)
{
    FILE *file = fopen(path, "wxe");
    bool is_whole = file != NULL;
    if (file) {
        errno = 0;
        put(context, file);
        is_whole = fflush(file) == 0 && !ferror(file);
    }
    int error = errno; /* of the open, or of the first write that failed; fclose may set another */
    if (file && fclose(file) != 0 && is_whole) {
        error = errno;
        is_whole = false;
    }
    return is_whole
               ? OCT_OK
               : oct_fail_errno(err, OCT_E_IO, error ? error : EIO, "%s: cannot be written", path);
}

/* Adds a line to a text of the heap. */
static void add_line(char **text, const char *line)
{
    char *more = oct_alloc_text("%s%s%s", *text ? *text : "", *text ? "\n" : "", line);
    free(*text);
    *text = more;
}

void oct_outputs_sum(const char *input, char crc[9])
{
    const char *dataset = NULL; /* the last ":/", as for readers */
    for (const char *at = oct_recording_names_dataset(input) ? strstr(input, ":/") : NULL; at;
         at = strstr(at + 1, ":/"))
        dataset = at;
    char *path =
        oct_alloc_text("%.*s", dataset ? (int)(dataset - input) : (int)strlen(input), input);
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct oct_file_sum sum;
    struct oct_error err;
    struct stat st;
    snprintf(crc, 9, "-");
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
        oct_file_sum_init(&sum, fd, path, &err) == OCT_OK) {
        if (oct_file_sum_to(&sum, sum.size, &err) == OCT_OK)
            snprintf(crc, 9, "%08x", sum.crc);
        oct_file_sum_finish(&sum);
    }
    if (fd >= 0)
        close(fd);
    free(path);
}

char *oct_outputs_command(void)
{
    char *words = NULL, *word = NULL;
    size_t room = 0;
    FILE *file = fopen("/proc/self/cmdline", "re");
    while (file && getdelim(&word, &room, '\0', file) > 0) {
        char *more = oct_alloc_text("%s%s%s", words ? words : "", words ? " " : "", word);
        free(words);
        words = more;
    }
    if (file)
        fclose(file);
    free(word);
    return words ? words : oct_alloc_text("%s", "");
}

void oct_outputs_source(struct oct_results *results, const char *const *inputs, unsigned n_inputs)
{
    char *names = NULL, *sums = NULL, *command = oct_outputs_command(), crc[9];
    for (unsigned i = 0; i < n_inputs; i++) {
        oct_outputs_sum(inputs[i], crc);
        add_line(&names, inputs[i]);
        add_line(&sums, crc);
    }
    oct_results_text(results, NULL, "source", names ? names : "");
    oct_results_text(results, NULL, "source_crc32c", sums ? sums : "");
    oct_results_text(results, NULL, "command", command);
    free(names);
    free(sums);
    free(command);
}
