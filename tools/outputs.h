/* The files that a command on pictures makes: none is an input, a recording or another output, and
 * all are made or none is. */
#ifndef OCT_TOOLS_OUTPUTS_H
#define OCT_TOOLS_OUTPUTS_H

#include "pipeline/base/err.h"

#include <stdbool.h>
#include <stdio.h>

struct oct_results;

/* A writer of a whole file, or of nothing. */
typedef enum oct_err oct_output_writer(void *context, const char *path, bool force,
                                       struct oct_error *err);

struct oct_output_file {
    const char *path; /* NULL: not asked for */

    /* Makes the whole file at `path`, or nothing: not at the path above but at a name beside it,
     * which nothing has and which messages show as the path above. */
    oct_output_writer *write;
    void *context;
};

/* What a command reads: none of it may be an output. */
struct oct_input_files {
    const char *const *inputs; /* [n_inputs] */
    unsigned n_inputs;
    const char *more[4]; /* a mask, a reference, ...; NULL: none */
};

/* Before any work: whether all files may be made. OCT_E_CONFIG (status 2: it is named wrongly),
 * OCT_E_IO: which may not, and why. */
enum oct_err oct_outputs_check(const struct oct_output_file *files, unsigned n, bool force,
                               const struct oct_input_files *read, struct oct_error *err);

/* Whether the file is a recording: spectra, or pictures with the configuration that they were made
 * by. False when there is none. */
bool oct_outputs_is_recording(const char *path);

/* Writes them, each under a name beside its path, and gives all of them their paths when all are
 * whole: begin, then write_one of those that are written while the work goes on, then publish,
 * which writes the others in order, or discard. When one fails nothing has changed under the paths.
 * `files` stays the caller's and lasts as long. publish frees outputs in any case; *outputs of
 * begin is NULL where no file was asked for. One thread at a time. */
struct oct_outputs;
enum oct_err oct_outputs_begin(struct oct_outputs **outputs, const struct oct_output_file *files,
                               unsigned n, bool force, struct oct_error *err);
enum oct_err oct_outputs_write_one(struct oct_outputs *outputs, unsigned i, struct oct_error *err);
enum oct_err oct_outputs_publish(struct oct_outputs *outputs, struct oct_error *err);
void oct_outputs_discard(struct oct_outputs *outputs); /* NULL is fine */

/* For `write` above: a file of text, which `put` writes. */
enum oct_err oct_outputs_print(const char *path, void (*put)(const void *context, FILE *file),
                               const void *context, struct oct_error *err);

/* CRC-32C of the bytes of the file that an input names, eight digits; "-": it cannot be read again,
 * as a pipe. */
void oct_outputs_sum(const char *input, char crc[9]);

/* The words of this process' command line, a blank between two, to be freed; "": the kernel does
 * not say. */
char *oct_outputs_command(void);

/* What the results are of, as attributes: source, all inputs, a line each; source_crc32c, the
 * CRC-32C of the bytes of each of these files in their order ("-": of a pipe); command, the command
 * line, which with the version in `software` says all parameters. */
void oct_outputs_source(struct oct_results *results, const char *const *inputs, unsigned n_inputs);

#endif
