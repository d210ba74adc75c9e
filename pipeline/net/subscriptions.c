#include "pipeline/net/subscriptions.h"

#include "pipeline/base/clock.h"
#include "pipeline/net/connections.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define GROWTH_BYTES 256

/* A viewer's topics are stored one after the other, each after its length. */
struct viewer {
    uint64_t cookie;                  /* of its connection; 0: nobody */
    uint32_t n, n_bytes, n_allocated; /* topics; bytes with the lengths */
    uint8_t *topics;
    bool is_cut;
};

struct topic_length {
    uint16_t bytes;
};

struct watched {
    const char *topic;
    bool always; /* by somebody whose end would not be noticed */
    atomic_bool now;
};

struct oct_subscriptions {
    struct viewer *viewers; /* [n], by descriptor */
    int n;
    struct watched *watched; /* [n_watched] */
    unsigned n_watched;
    uint64_t review_ns; /* when to look again; 0: nothing has ended */
};

struct oct_subscriptions *oct_subscriptions_create(void)
{
    return calloc(1, sizeof(struct oct_subscriptions));
}

void oct_subscriptions_destroy(struct oct_subscriptions *all)
{
    for (int fd = 0; all && fd < all->n; fd++)
        free(all->viewers[fd].topics);
    if (all) {
        free(all->viewers);
        free(all->watched);
    }
    free(all);
}

static void forget(struct viewer *v)
{
    free(v->topics);
    *v = (struct viewer){0};
}

static struct viewer *place_of(struct oct_subscriptions *all, int fd)
{
    if (fd < 0 || fd >= OCT_CONNECTIONS_MOST)
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

/* The topic's offset; n_bytes: it is not there. */
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

/* ---- what is wanted ---- */

bool oct_subscriptions_watch(struct oct_subscriptions *all, const char *topic)
{
    struct watched *more = realloc(all->watched, (all->n_watched + 1) * sizeof(*more));
    if (!more)
        return false;
    all->watched = more;
    more[all->n_watched].topic = topic;
    more[all->n_watched].always = false;
    atomic_init(&more[all->n_watched].now, false);
    all->n_watched++;
    return true;
}

bool oct_subscriptions_wants(const struct oct_subscriptions *all, const char *topic)
{
    for (unsigned i = 0; i < all->n_watched; i++)
        if (strcmp(all->watched[i].topic, topic) == 0)
            return atomic_load(&all->watched[i].now);
    return false;
}

/* ZeroMQ's rule: a subscription takes every topic that begins with it, none at all takes all. */
static bool takes(const uint8_t *subscription, size_t n_bytes, const char *topic)
{
    return n_bytes <= strlen(topic) && (n_bytes == 0 || memcmp(subscription, topic, n_bytes) == 0);
}

static void note_wish(struct oct_subscriptions *all, const uint8_t *subscription, size_t n_bytes,
                      bool for_ever)
{
    for (unsigned i = 0; i < all->n_watched; i++)
        if (takes(subscription, n_bytes, all->watched[i].topic)) {
            all->watched[i].always |= for_ever;
            atomic_store(&all->watched[i].now, true);
        }
}

static bool has_one_that_takes(const struct viewer *v, const char *topic)
{
    for (uint32_t at = 0; at < v->n_bytes;
         at += (uint32_t)sizeof(struct topic_length) + length_at(v, at))
        if (takes(v->topics + at + sizeof(struct topic_length), length_at(v, at), topic))
            return true;
    return false;
}

static bool is_wanted(const struct oct_subscriptions *all, const char *topic)
{
    for (int fd = 0; fd < all->n; fd++)
        if (!all->viewers[fd].is_cut && has_one_that_takes(&all->viewers[fd], topic))
            return true;
    return false;
}

void oct_subscriptions_review(struct oct_subscriptions *all)
{
    if (!all->review_ns || oct_clock_ns() < all->review_ns)
        return;
    all->review_ns = 0;
    for (int fd = 0; fd < all->n; fd++)
        if (all->viewers[fd].cookie && oct_connections_cookie(fd) != all->viewers[fd].cookie)
            forget(&all->viewers[fd]);
    for (unsigned i = 0; i < all->n_watched; i++)
        atomic_store(&all->watched[i].now,
                     all->watched[i].always || is_wanted(all, all->watched[i].topic));
}

bool oct_subscriptions_note(struct oct_subscriptions *all, int fd, bool begins,
                            const uint8_t *topic, size_t n_bytes)
{
    if (!begins)
        all->review_ns = oct_clock_ns() + OCT_SUBSCRIPTIONS_REVIEW_MS * UINT64_C(1000000);
    if (begins && fd < 0)
        note_wish(all, topic, n_bytes, true);
    uint64_t cookie = oct_connections_cookie(fd);
    if (!oct_connections_is_viewer(fd, cookie))
        return true;
    struct viewer *v = place_of(all, fd);
    if (v && v->cookie != cookie) {
        forget(v);
        v->cookie = cookie;
    }
    if (v && v->is_cut)
        return false;
    if (v && apply(v, begins, topic, n_bytes)) {
        if (begins)
            note_wish(all, topic, n_bytes, false);
        return true;
    }
    if (v)
        v->is_cut = true;
    if (oct_connections_cut(fd, cookie))
        oct_connections_note_viewer_cut();
    return false;
}
