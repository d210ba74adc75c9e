/* The phantoms of the independent reference. */
#include "formats/input/archive.h"
#include "test/rig/flow_scene.h"
#include "test/rig/tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

void *oct_flow_truth(const char *phantom, const char *array, size_t item, size_t *n)
{
    char path[4096], name[64];
    const char *top = getenv("OCT_TOP");
    struct oct_archive *archive;
    struct oct_archive_entry entry;
    struct stat st;
    bool found;
    uint16_t header_bytes;
    snprintf(path, sizeof(path), "%s/../shared/data/flow/%s/truth.npz", top ? top : ".", phantom);
    snprintf(name, sizeof(name), "%s.npy", array);
    if (stat(path, &st) != 0)
        return NULL;
    assert_int_equal(oct_archive_open(&archive, path, path, (uint64_t)st.st_size, NULL), OCT_OK);
    assert_int_equal(oct_archive_find(archive, name, &entry, &found, NULL), OCT_OK);
    assert_true(found);
    uint8_t *bytes = malloc(entry.n_bytes);
    assert_non_null(bytes);
    assert_int_equal(oct_archive_read(archive, &entry, 0, bytes, entry.n_bytes, NULL), OCT_OK);
    oct_archive_close(archive);
    memcpy(&header_bytes, bytes + 8, sizeof(header_bytes));
    const size_t left = entry.n_bytes - 10 - header_bytes;
    assert_int_equal(left % item, 0);
    memmove(bytes, bytes + 10 + header_bytes, left);
    *n = left / item;
    return bytes;
}
