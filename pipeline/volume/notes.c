#define _GNU_SOURCE /* TEMP_FAILURE_RETRY */
/* Attributes of the root of a file that is there: what its input was. */
#include "pipeline/volume/volume.h"

#include "pipeline/volume/hdf5_image.h"
#include "pipeline/volume/hdf5_make.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* Into the image in memory; the file is not changed yet. Under the lock. */
static bool put(struct oct_hdf5_image *image, const struct oct_volume_note *notes, unsigned n,
                struct oct_hdf5_reason *reason)
{
    hid_t file = oct_hdf5_image_open(image, H5F_ACC_RDWR, 1, reason->text, sizeof(reason->text));
    bool ok = file >= 0;
    for (unsigned i = 0; ok && i < n; i++)
        ok = notes[i].text ? oct_hdf5_put_text(file, notes[i].name, notes[i].text, reason)
                           : oct_hdf5_put_attribute(file, notes[i].name, H5T_STD_U64LE,
                                                    H5T_NATIVE_UINT64, 0, &notes[i].number, reason);
    if (file >= 0 && H5Fclose(file) < 0 && ok) {
        ok = false;
        oct_hdf5_reason(reason->text, sizeof(reason->text));
    }
    return ok;
}

enum oct_err oct_volume_add_notes(const char *path, const struct oct_volume_note *notes, unsigned n,
                                  struct oct_error *err)
{
    struct stat st;
    struct oct_hdf5_image image;
    struct oct_hdf5_reason reason = {.text = ""};
    uint64_t n_bytes;
    const int fd = (int)TEMP_FAILURE_RETRY(open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC));
    if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        const int errnum = fd < 0 ? errno : EINVAL;
        if (fd >= 0)
            close(fd);
        return oct_fail_errno(err, OCT_E_IO, errnum, "%s: cannot open", path);
    }
    oct_hdf5_image_init(&image, fd, (uint64_t)st.st_size);
    oct_hdf5_lock();
    const bool ok = put(&image, notes, n, &reason);
    oct_hdf5_unlock();
    const enum oct_err e =
        ok ? oct_hdf5_image_store(&image, fd, path, &n_bytes, err)
           : oct_fail(err, OCT_E_IO, "%s: cannot add attributes: %s", path, reason.text);
    oct_hdf5_image_finish(&image);
    close(fd);
    return e;
}
