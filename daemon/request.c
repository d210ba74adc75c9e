#include "daemon/request.h"

#include "pipeline/base/utf8.h"

#include <stdbool.h>
#include <string.h>

static bool holds_zero(const char *bytes, size_t n_bytes)
{
    static const char escape[] = "\\u0000";
    const size_t n = strlen(escape);
    for (size_t i = 0; i < n_bytes; i++) {
        if (bytes[i] == '\0' || (n_bytes - i >= n && memcmp(bytes + i, escape, n) == 0))
            return true;
        i += bytes[i] == '\\'; /* skips the escaped character, perhaps another backslash */
    }
    return false;
}

static enum oct_err check_shape(const char *bytes, size_t n_bytes, struct oct_error *err)
{
    size_t n_values = 1, depth = 0;
    bool in_string = false;
    for (size_t i = 0; i < n_bytes; i++) {
        if (in_string && bytes[i] == '\\')
            i++;
        else if (bytes[i] == '"')
            in_string = !in_string;
        else if (!in_string && (bytes[i] == '{' || bytes[i] == '['))
            depth++, n_values++;
        else if (!in_string && (bytes[i] == ',' || bytes[i] == ':'))
            n_values++;
        else if (!in_string && (bytes[i] == '}' || bytes[i] == ']') && depth > 0)
            depth--;
        if (depth > OCT_REQUEST_DEPTH || n_values > OCT_REQUEST_VALUES)
            return oct_fail(err, OCT_E_FORMAT,
                            "the request holds more than %d names and values, or more than %d "
                            "brackets in one another: no command needs so many",
                            OCT_REQUEST_VALUES, OCT_REQUEST_DEPTH);
    }
    return OCT_OK;
}

enum oct_err oct_request_check(const char *bytes, size_t n_bytes, struct oct_error *err)
{
    if (n_bytes > OCT_REQUEST_BYTES)
        return oct_fail(err, OCT_E_FORMAT,
                        "the request is %zu bytes long: at most %d are read, and no command needs "
                        "so many",
                        n_bytes, OCT_REQUEST_BYTES);
    if (holds_zero(bytes, n_bytes))
        return oct_fail(err, OCT_E_FORMAT, "the request is not one JSON object: it holds a zero");
    size_t n_valid = oct_utf8_valid_bytes(bytes, n_bytes);
    if (n_valid < n_bytes)
        return oct_fail(err, OCT_E_FORMAT,
                        "the request is not UTF-8 at byte %zu: JSON is, write it so", n_valid);
    return check_shape(bytes, n_bytes, err);
}
