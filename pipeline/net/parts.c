#include "pipeline/net/parts.h"

#include <string.h>

#define SIGNATURE_BYTES 10
#define GREETING_BYTES 64 /* version 3, from its first byte on */
#define GREETING_2_BYTES 12
#define MOST_SIZE (UINT64_C(1) << 40)

enum phase {
    NOT_FOLLOWED = OCT_PARTS_NOT_FOLLOWED,
    SIGNATURE,
    VERSION,
    GREETING,
    FLAGS,
    SIZE,
    BODY
};
enum flag { FLAG_MORE = 1, FLAG_LONG = 2, FLAG_COMMAND = 4 };

struct oct_parts oct_parts_begin(enum oct_callers callers)
{
    return (struct oct_parts){
        .phase = SIGNATURE, .left = SIGNATURE_BYTES, .callers = (uint64_t)callers & 7};
}

static bool take_signature(struct oct_parts *p, unsigned byte)
{
    bool is_first = p->left == SIGNATURE_BYTES;
    p->left--;
    if (p->left == 0)
        p->phase = VERSION;
    return is_first ? byte == 0xff : p->left > 0 || (byte & 1);
}

static bool take_version(struct oct_parts *p, unsigned byte)
{
    unsigned whole = byte == 1 ? GREETING_2_BYTES : GREETING_BYTES;
    p->phase = GREETING;
    p->left = whole - SIGNATURE_BYTES - 1;
    return byte != 0 && !(byte == 1 && p->callers == OCT_CALLERS_VIEWERS);
}

/* Commands may stand between the parts of a message. */
static bool take_flags(struct oct_parts *p, unsigned byte)
{
    p->phase = SIZE;
    p->left = 0;
    p->n_size = byte & FLAG_LONG ? 8 : 1;
    if (byte & FLAG_MORE) {
        p->n_parts++;
        return p->n_parts < OCT_PARTS_MOST;
    }
    if (!(byte & FLAG_COMMAND))
        p->n_parts = 0;
    return true;
}

static bool take_size(struct oct_parts *p, unsigned byte)
{
    if (p->left >= MOST_SIZE >> 8)
        return false;
    p->left = (uint64_t)p->left << 8 | byte;
    p->n_size--;
    if (p->n_size == 0)
        p->phase = p->left ? BODY : FLAGS;
    return true;
}

/* Skips bytes whose content does not matter. */
static size_t skip(struct oct_parts *p, size_t n_bytes)
{
    size_t n = p->left < n_bytes ? (size_t)p->left : n_bytes;
    p->left = (p->left - n) & (MOST_SIZE - 1);
    if (p->left == 0)
        p->phase = FLAGS;
    return n;
}

bool oct_parts_take(struct oct_parts *p, const void *bytes, size_t n_bytes)
{
    const unsigned char *at = bytes, *end = at + n_bytes;
    bool ok = true;
    while (ok && at < end)
        switch ((enum phase)p->phase) {
        case NOT_FOLLOWED:
            return true;
        case SIGNATURE:
            ok = take_signature(p, *at++);
            break;
        case VERSION:
            ok = take_version(p, *at++);
            break;
        case FLAGS:
            ok = take_flags(p, *at++);
            break;
        case SIZE:
            ok = take_size(p, *at++);
            break;
        case GREETING:
        case BODY:
            at += skip(p, (size_t)(end - at));
            break;
        }
    return ok;
}
