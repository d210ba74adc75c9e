/* What the fuzz targets share. A target is one file test/fuzz/fuzz_NAME.c with the function below;
 * libFuzzer calls it with inputs of its own making (make fuzz), replay.c with those kept in
 * test/fuzz/corpus/NAME (make check). One thread. */
#ifndef OCT_TEST_FUZZ_FUZZ_H
#define OCT_TEST_FUZZ_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns 0. A fault ends the process: a sanitizer's, or fuzz_must. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Ends the process with a line that names what is not so. */
#define fuzz_must(holds) ((holds) ? (void)0 : fuzz_fail(#holds, __FILE__, __LINE__))
_Noreturn void fuzz_fail(const char *what, const char *file, int line);

/* An input, taken from its front; zeros once it has run out. */
struct fuzz_input {
    const uint8_t *data;
    size_t left;
};
uint64_t fuzz_take(struct fuzz_input *in, unsigned n_bytes); /* little-endian, n_bytes <= 8 */
uint32_t fuzz_below(struct fuzz_input *in, uint32_t n);      /* n >= 1 */
/* Moves up to n_bytes into a buffer of n_bytes; the rest of it is zeroed. */
void fuzz_fill(struct fuzz_input *in, void *buffer, size_t n_bytes);

/* The bytes up to the separator 0x1e, which is taken too, or to the end. Malloc'd exactly as large,
 * so that a read beyond shows; a NUL is added when `text`. */
char *fuzz_piece(struct fuzz_input *in, bool text, size_t *n_bytes);

/* An empty folder of this process in TMPDIR (/dev/shm without), removed at exit with the files in
 * it; fuzz_path makes a path there, good until the next call with the same slot (0 or 1). */
const char *fuzz_folder(void);
const char *fuzz_path(unsigned slot, const char *name);
/* Writes a whole file of mode 0600. */
void fuzz_write_file(const char *path, const void *bytes, size_t n_bytes);

#endif
