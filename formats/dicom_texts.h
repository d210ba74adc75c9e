/* Texts of a DICOM file, as UTF-8: a few attributes of a small file that came from elsewhere. The
 * bytes are checked here (dicom_walk.h); DCMTK sees none of them. Any thread. */
#ifndef OCT_FORMATS_DICOM_TEXTS_H
#define OCT_FORMATS_DICOM_TEXTS_H

#include "pipeline/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct oct_dicom_text {
    uint32_t tag, sequence; /* directly around it; 0: none */
    char *text;             /* room for `bytes`, the zero at the end too */
    size_t bytes;
};

/* Fills each text with its attribute's value, the first that there is, "" where there is none: one
 * line of UTF-8 without the spaces around it. Converted from the file's character set (PS3.3
 * C.12.1.1.2, one set without code extensions; a file that names none may hold UTF-8).
 * *is_whole (may be NULL): false: there were characters of another or control characters, now '?',
 * or a value that had not room enough, now "". OCT_E_FORMAT: damaged; OCT_E_IO. */
enum oct_err oct_dicom_texts_read(const char *path, const struct oct_dicom_text *texts, unsigned n,
                                  bool *is_whole, struct oct_error *err);

#endif
