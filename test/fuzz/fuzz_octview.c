/* JSON of strangers beside samples: the input is the text of an OCTview .json, up to the separator
 * 0x1e, and then the samples. It is parsed, and then the file is opened as octctl opens it. */
#include "formats/input/formats.h"
#include "formats/input/octview_meta.h"
#include "test/fuzz/fuzz.h"
#include "test/fuzz/input.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input in = {data, size};
    struct oct_octview_meta meta;
    size_t n;
    char *json = fuzz_piece(&in, false, &n);
    oct_octview_meta_read(&meta, json, n);
    fuzz_must(meta.is_octview || meta.n_lines == 0);
    fuzz_must(!(meta.width_um <= 0) && !(meta.line_rate_hz <= 0));
    fuzz_write_file(fuzz_path(0, "a.json"), json, n);
    fuzz_write_file(fuzz_path(1, "a.bin"), in.data, in.left);
    fuzz_open_input(&oct_input_octview, fuzz_path(1, "a.bin"), "");
    free(json);
    return 0;
}
