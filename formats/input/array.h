/* B-scans out of an array of numbers of any type whose axes lie in any order: read a B-scan at a
 * time where B-scans lie one after another, else a block of them, which is kept.
 *
 *     stored [n0][n1][n2] --read--> values of some B-scans --scaling.h--> u16 [M][N]
 *
 * One thread uses an array at a time. */
#ifndef OCT_FORMATS_INPUT_ARRAY_H
#define OCT_FORMATS_INPUT_ARRAY_H

#include "formats/input/input.h"
#include "formats/input/sample.h"

enum oct_input_axis { OCT_INPUT_BSCAN, OCT_INPUT_LINE, OCT_INPUT_SAMPLE };

/* How an array lies in its file. */
struct oct_input_order {
    uint64_t n[3];               /* V, M, N */
    enum oct_input_axis axes[3]; /* stored, the outermost first */
};

/* What the axes of an array of 2 or 3 axes are; extents as the array's own program names them, and
 * is_reversed: the first lies fastest in the file (Fortran). OCT_E_FORMAT: another rank, extents
 * beyond geometry.h or other than the wish says, with the order that would fit. */
enum oct_err oct_input_order_find(struct oct_input_order *order, const char *name, unsigned rank,
                                  const uint64_t *extents, bool is_reversed,
                                  const struct oct_input_wish *wish, struct oct_error *err);

struct oct_input_array_setup {
    const char *name; /* for messages; copied */
    struct oct_input_order order;
    struct oct_sample_kind kind;
    uint64_t bscans_at_once; /* that are read together best; 0: as the order says */

    /* Either the values lie in a file from first_byte on (fd is the caller's; the caller has
     * compared their size with the file's), or `read` gives those of n B-scans: as they are stored,
     * except for the axis of B-scans, of which it gives i to i + n - 1. */
    int fd;
    uint64_t first_byte;
    void *context;    /* for `read` */
    uint64_t channel; /* for `read`: which of several */
    enum oct_err (*read)(const struct oct_input_array_setup *setup, uint64_t i, uint64_t n,
                         void *values, struct oct_error *err);
};

/* OCT_E_FORMAT: a dataset of HDF5 that holds stored_bytes claims more values than they can be
 * packed from. One that was never written is all zeros, however large it claims to be. */
enum oct_err oct_input_check_stored(const char *name, uint64_t n_bytes, uint64_t stored_bytes,
                                    struct oct_error *err);

struct oct_input_array;

/* The extents of the order are within geometry.h's limits, except B-scans, of which there may be
 * any number. Reads the whole array once where the scaling needs its range. Sets n_samples,
 * n_lines, n_bscans, bits and scaling of *facts. *array is NULL on error. */
enum oct_err oct_input_array_create(struct oct_input_array **array,
                                    const struct oct_input_array_setup *setup,
                                    const struct oct_input_wish *wish,
                                    struct oct_input_facts *facts, struct oct_error *err);

/* The same of a file that is nothing but unsigned little-endian samples of 1, 2 or 4 bytes: n are
 * V, M, N, which the caller has compared with probe->size. */
enum oct_err oct_input_array_of_file(struct oct_input_array **array,
                                     const struct oct_input_probe *probe, const uint64_t n[3],
                                     unsigned sample_bytes, const struct oct_input_wish *wish,
                                     struct oct_input_facts *facts, struct oct_error *err);

/* B-scan i into spectra ([M][N]). */
enum oct_err oct_input_array_read(struct oct_input_array *array, uint64_t i, uint16_t *spectra,
                                  struct oct_error *err);

void oct_input_array_destroy(struct oct_input_array *array); /* NULL is fine */

#endif
