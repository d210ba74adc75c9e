/* Settings of strangers beside samples: the input is the text of an OCTproZ _meta.txt, up to the
 * separator 0x1e, and then the samples. It is parsed, and then the file is opened as octctl opens
 * it. */
#include "formats/input/formats.h"
#include "formats/input/octproz_meta.h"
#include "test/fuzz/fuzz.h"
#include "test/fuzz/input.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input in = {data, size};
    struct oct_octproz_meta meta;
    struct oct_calibration cal = {0};
    size_t n;
    char *text = fuzz_piece(&in, true, &n);
    oct_octproz_meta_read(&meta, text, n);
    fuzz_must(memchr(meta.system, '\0', sizeof(meta.system)) != NULL);
    if (meta.n_samples >= 4 && meta.n_samples <= 4096) {
        struct oct_error err = {.text = ""};
        fuzz_must(oct_octproz_meta_calibration(&meta, (uint32_t)meta.n_samples, &cal, &err) ==
                  OCT_OK);
        oct_calibration_finish(&cal);
    }
    fuzz_write_file(fuzz_path(0, "a_meta.txt"), text, n);
    fuzz_write_file(fuzz_path(1, "a_raw.raw"), in.data, in.left);
    fuzz_open_input(&oct_input_octproz, fuzz_path(1, "a_raw.raw"), "");
    free(text);
    return 0;
}
