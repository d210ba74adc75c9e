/* Key files: read as a public and as a secret one; what is taken for a key is one. */
#include "pipeline/net/curve.h"
#include "test/fuzz/fuzz.h"

#include <string.h>
#include <unistd.h>

static void check(enum oct_err e, const char *key, const struct oct_error *err, const char *path)
{
    if (e == OCT_OK)
        fuzz_must(strlen(key) == OCT_CURVE_KEY_BYTES - 1 && oct_curve_is_key(key));
    else
        fuzz_must(e == OCT_E_CONFIG && strncmp(err->text, path, strlen(path)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char public[OCT_CURVE_KEY_BYTES] = "", secret[OCT_CURVE_KEY_BYTES] = "",
         again[OCT_CURVE_KEY_BYTES] = "";
    struct oct_error err = {0};
    const char *path = fuzz_path(0, "key"), *copy = fuzz_path(1, "copy");
    fuzz_write_file(path, data, size);
    enum oct_err has_public = oct_curve_read_public(path, public, &err);
    check(has_public, public, &err, path);
    enum oct_err has_secret = oct_curve_read_secret(path, secret, &err);
    check(has_secret, secret, &err, path);
    if (has_public || has_secret)
        return 0;
    unlink(copy);
    fuzz_must(!oct_curve_write(copy, public, secret, &err));
    fuzz_must(!oct_curve_read_public(copy, again, &err) && strcmp(again, public) == 0);
    fuzz_must(!oct_curve_read_secret(copy, again, &err) && strcmp(again, secret) == 0);
    return 0;
}
