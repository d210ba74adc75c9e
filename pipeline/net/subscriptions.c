#include "pipeline/net/subscriptions.h"

#include "pipeline/net/descriptors.h"
#include "pipeline/net/intake.h"

#include <stdlib.h>
#include <string.h>

#define GROWTH_BYTES 256

/* The topics stand one behind the other, each behind its length. */
struct viewer {
    uint64_t cookie;                  /* of its connection; 0: nobody */
    uint32_t n, n_bytes, n_allocated; /* topics; bytes with the lengths */
    uint8_t *topics;
    bool is_cut;
};

struct topic_length {
    uint16_t bytes;
};

struct oct_subscriptions {
    struct viewer *viewers; /* [n], by descriptor */
    int n;
};

struct oct_subscriptions *oct_subscriptions_create(void)
{
    return calloc(1, sizeof(struct oct_subscriptions));
}

void oct_subscriptions_destroy(struct oct_subscriptions *all)
{
    for (int fd = 0; all && fd < all->n; fd++)
        free(all->viewers[fd].topics);
    if (all)
        free(all->viewers);
    free(all);
}

static void forget(struct viewer *v)
{
    free(v->topics);
    *v = (struct viewer){0};
}

static struct viewer *place_of(struct oct_subscriptions *all, int fd)
{
    if (fd < 0 || fd >= OCT_DESCRIPTORS_MOST)
        return NULL;
    if (fd >= all->n) {
        int n = fd + 64;
        struct viewer *more = realloc(all->viewers, (size_t)n * sizeof(*more));
        if (!more)
            return NULL;
        memset(more + all->n, 0, (size_t)(n - all->n) * sizeof(*more));
        all->viewers = more;
        all->n = n;
    }
    return &all->viewers[fd];
}

static uint16_t length_at(const struct viewer *v, uint32_t at)
{
    struct topic_length length;
    memcpy(&length, v->topics + at, sizeof(length));
    return length.bytes;
}

/* Where it stands; n_bytes: it does not. */
static uint32_t find(const struct viewer *v, const uint8_t *topic, size_t n_bytes)
{
    uint32_t at = 0;
    while (at < v->n_bytes) {
        size_t n = length_at(v, at);
        if (n == n_bytes && memcmp(v->topics + at + sizeof(struct topic_length), topic, n) == 0)
            break;
        at += (uint32_t)(sizeof(struct topic_length) + n);
    }
    return at;
}

static void take_out(struct viewer *v, uint32_t at)
{
    uint32_t n = (uint32_t)sizeof(struct topic_length) + length_at(v, at);
    memmove(v->topics + at, v->topics + at + n, v->n_bytes - at - n);
    v->n_bytes -= n;
    v->n--;
}

/* False: there is no room for it. */
static bool put_in(struct viewer *v, const uint8_t *topic, size_t n_bytes)
{
    size_t n = sizeof(struct topic_length) + n_bytes;
    size_t before = v->n_bytes - v->n * sizeof(struct topic_length);
    if (v->n == OCT_MOST_SUBSCRIPTIONS || n_bytes > OCT_MOST_TOPIC_BYTES - before)
        return false;
    if (v->n_bytes + n > v->n_allocated) {
        uint8_t *more = realloc(v->topics, v->n_bytes + n + GROWTH_BYTES);
        if (!more)
            return false;
        v->topics = more;
        v->n_allocated = (uint32_t)(v->n_bytes + n + GROWTH_BYTES);
    }
    struct topic_length length = {.bytes = (uint16_t)n_bytes};
    memcpy(v->topics + v->n_bytes, &length, sizeof(length));
    if (n_bytes)
        memcpy(v->topics + v->n_bytes + sizeof(length), topic, n_bytes);
    v->n_bytes += (uint32_t)n;
    v->n++;
    return true;
}

/* False: it has no room. */
static bool apply(struct viewer *v, bool begins, const uint8_t *topic, size_t n_bytes)
{
    uint32_t at = find(v, topic, n_bytes);
    bool stands = at < v->n_bytes;
    if (stands && !begins)
        take_out(v, at);
    return stands || !begins || put_in(v, topic, n_bytes);
}

bool oct_subscriptions_note(struct oct_subscriptions *all, int fd, bool begins,
                            const uint8_t *topic, size_t n_bytes)
{
    uint64_t cookie = oct_descriptors_cookie(fd);
    if (!oct_intake_is_viewer(fd, cookie))
        return true;
    struct viewer *v = place_of(all, fd);
    if (v && v->cookie != cookie) {
        forget(v);
        v->cookie = cookie;
    }
    if (v && v->is_cut)
        return false;
    if (v && apply(v, begins, topic, n_bytes))
        return true;
    if (v)
        v->is_cut = true;
    if (oct_descriptors_cut(fd, cookie))
        oct_intake_note_cut();
    return false;
}
