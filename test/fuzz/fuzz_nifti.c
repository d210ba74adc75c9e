/* Volumes of strangers: the first byte says whether the rest is packed by gzip here, or no change
 * would get past its checksum; the rest is a NIfTI file, or whatever else claims to be a volume. */
#include "formats/volumes.h"
#include "test/fuzz/fuzz.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { MOST_VOXELS = 1 << 20 };

/* LeakSanitizer asks for it. libhdf5 1.10 now and then leaves memory behind after a damaged file;
 * the handles that we leave are found by the targets of volumes and pictures, and by the tests. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libhdf5\n";
}

static void write_packed(const char *path, const uint8_t *data, size_t size)
{
    gzFile stream = gzopen(path, "wb1");
    fuzz_must(stream != NULL);
    fuzz_must(size == 0 || gzwrite(stream, data, (unsigned)size) == (int)size);
    fuzz_must(gzclose(stream) == Z_OK);
}

static void check_info(const struct oct_volume_info *info)
{
    for (int i = 0; i < 3; i++) {
        fuzz_must(info->dims[i] > 0);
        fuzz_must(isnan(info->um[i]) || (isfinite(info->um[i]) && info->um[i] > 0));
        for (int k = 0; k < 4 && info->is_nifti; k++)
            fuzz_must(isfinite(info->to_mm[i][k]));
    }
    fuzz_must(!(info->is_db && info->is_linear));
}

static void read_volume(const char *path)
{
    struct oct_volume_info info;
    struct oct_error err = {.code = OCT_OK};
    enum oct_err e = oct_volume_look(path, &info, &err);
    if (!e) {
        check_info(&info);
        const uint64_t n_rows = (uint64_t)info.dims[0] * info.dims[1]; /* 2^64 is out of reach */
        if (n_rows > MOST_VOXELS || n_rows * info.dims[2] > MOST_VOXELS)
            return;
        const size_t n = (size_t)(n_rows * info.dims[2]);
        float *values = malloc(n * sizeof(*values)); /* a write beyond is then seen */
        fuzz_must(values != NULL);
        e = oct_volume_load(path, &info, values, &err);
        for (size_t i = 0; !e && info.is_nifti && i < n; i++)
            fuzz_must(isfinite(values[i]) || isnan(values[i]));
        free(values);
    }
    fuzz_must(!e || (err.code == e && err.text[0] && !strchr(err.text, '\n')));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *path = fuzz_path(0, "volume.nii");
    if (size == 0)
        return 0;
    if (data[0] & 1)
        write_packed(path, data + 1, size - 1);
    else
        fuzz_write_file(path, data + 1, size - 1);
    read_volume(path);
    return 0;
}
