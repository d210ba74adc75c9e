/* Thorlabs' files of strangers. A first byte 0: the rest is a whole archive. Else the input is
 * Header.xml, up to the separator 0x1e, and then what the entries that the header names share as
 * their contents: an archive is made of them, so that what lies behind the ZIP is reached. */
#include "formats/input/formats.h"
#include "formats/input/thorlabs_header.h"
#include "test/fuzz/fuzz.h"
#include "test/fuzz/input.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zip.h>

#define MOST_ENTRIES 24u
#define MOST_BYTES (1u << 16)

static void put(zip_t *zip, const char *name, const void *bytes, size_t n)
{
    zip_source_t *source = zip_source_buffer(zip, bytes, n, 0);
    fuzz_must(source != NULL);
    if (zip_file_add(zip, name, source, 0) < 0)
        zip_source_free(source);
}

/* An entry for each file of the header: as long as it says, or as the input is. */
static void make(const char *path, const char *xml, size_t n_xml, const struct fuzz_input *in)
{
    struct oct_thorlabs_header header;
    struct oct_error err = {.text = ""};
    int code = 0;
    const enum oct_err e = oct_thorlabs_header_read(&header, "a.oct", xml, n_xml, &err);
    fuzz_must((e == OCT_OK) == (err.text[0] == '\0') && !strchr(err.text, '\n'));
    zip_t *zip = zip_open(path, ZIP_CREATE | ZIP_TRUNCATE, &code);
    uint8_t *bytes = calloc(1, MOST_BYTES);
    fuzz_must(zip && bytes);
    if (in->left > 0)
        for (size_t i = 0; i < MOST_BYTES; i++)
            bytes[i] = in->data[i % in->left];
    put(zip, "Header.xml", xml, n_xml);
    for (size_t i = 0; i < header.n_files && i < MOST_ENTRIES; i++) {
        const struct oct_thorlabs_file *f = &header.files[i];
        const uint64_t width = f->bytes ? f->bytes : 1, lines = f->n_lines ? f->n_lines : 1;
        uint64_t n = f->n_samples <= MOST_BYTES && lines <= MOST_BYTES && width <= 8
                         ? f->n_samples * lines * width
                         : in->left;
        fuzz_must(memchr(f->name, '\0', sizeof(f->name)) && f->name[0]);
        put(zip, f->entry, bytes, n < MOST_BYTES ? n : MOST_BYTES);
    }
    fuzz_must(zip_close(zip) == 0);
    free(bytes);
    oct_thorlabs_header_finish(&header);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input in = {data, size};
    const char *path = fuzz_path(0, "a.oct");
    if (fuzz_take(&in, 1) == 0) {
        fuzz_write_file(path, in.data, in.left);
    } else {
        size_t n;
        char *xml = fuzz_piece(&in, false, &n);
        remove(path);
        make(path, xml, n, &in);
        free(xml);
    }
    fuzz_open_input(&oct_input_thorlabs, path, "");
    fuzz_open_input(&oct_input_thorlabs, path, "Cam1");
    return 0;
}
