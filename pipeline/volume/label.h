/* The label of a closed recording: whose eye it is, and whether it is worth keeping. It stands in
 * the root attributes `eye`, `pseudonym` and `mark` (text; a file that was never marked has no
 * `mark`).
 *
 * Nothing that the file holds is overwritten. The new label goes behind the file's end, in a copy
 * of the root's object header, and is synced; then eight bytes at the file's start are overwritten,
 * which makes the copy the root. So a process killed at any moment, and a power cut, leave a file
 * with the old label or with the new one, which any reader of HDF5 opens, and arrays stay where
 * they are. A reader that has the file open sees the old label until it opens the file again. */
#ifndef OCT_PIPELINE_VOLUME_LABEL_H
#define OCT_PIPELINE_VOLUME_LABEL_H

#include "pipeline/base/err.h"

#include <stdbool.h>

#define OCT_LABEL_PSEUDONYM_BYTES 128u /* with the zero at the end */

enum oct_volume_mark {
    OCT_MARK_NONE,
    OCT_MARK_KEEP,
    OCT_MARK_REPEAT, /* the recording is to be made again; nothing deletes this one */
    OCT_N_MARKS,
};

/* "none", "keep", "repeat" */
const char *oct_volume_mark_name(enum oct_volume_mark mark);

/* By its name; "" is none too. False: there is no such mark. */
bool oct_volume_mark_of(const char *name, enum oct_volume_mark *mark);

struct oct_volume_label {
    char eye[8]; /* "", "OD" or "OS"; another program's file may say something else */
    char pseudonym[OCT_LABEL_PSEUDONYM_BYTES]; /* UTF-8, one line */
    enum oct_volume_mark mark;
};

/* NULL: as the file has it. Strings are borrowed for the call. */
struct oct_volume_label_change {
    const char *eye; /* "", "OD" or "OS" */
    const char *pseudonym;
    const enum oct_volume_mark *mark;
};

/* Takes milliseconds, whatever the file's size; any thread. Errors as of oct_volume_open. */
enum oct_err oct_volume_label_read(const char *path, struct oct_volume_label *label,
                                   struct oct_error *err);

/* Changes the label; *label (may be NULL) becomes what the file then has. Returns when the disk has
 * it: three syncs. Without a difference nothing is written. The configuration in the file stays as
 * it was when the recording was made.
 *
 * OCT_E_ARG: no such eye or mark, or a pseudonym that is no UTF-8, has control characters or is too
 * long. OCT_E_STATE: the recording is still being written (PATH.part), another program writes the
 * file, or others change its label for ten seconds. OCT_E_FORMAT: no recording, or of a layout that
 * cannot be changed so (says which). OCT_E_IO, OCT_E_NO_SPACE: the disk refuses; the old label
 * stands. Readers, libhdf5's too, may have the file open meanwhile. */
enum oct_err oct_volume_label_write(const char *path, const struct oct_volume_label_change *change,
                                    struct oct_volume_label *label, struct oct_error *err);

#endif
