#define _GNU_SOURCE /* MAP_ANONYMOUS, MAP_NORESERVE */
#define _GNU_SOURCE /* shm_open's flags, getgrnam_r */
#include "pipeline/ingest/shm_store.h"

#include "pipeline/wire/shm_layout.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Guards the reading of a mapped file that another process may truncate: an access to a missing
 * page would end the process with SIGBUS. In guarded memory a thread that accesses such a page
 * reads zeros instead, and the guard records it. (Wayland's compositors read their clients' memory
 * in this way.)
 *
 * The handler is process-wide; it passes every SIGBUS outside guarded memory on to the previous
 * handler. */

/* The handler searches them in the thread that faulted: so they are lock-free and at fixed
 * addresses. */
#define MOST_GUARDS 16

struct oct_shm_guard {
    _Atomic(unsigned char *) end; /* written last, cleared first; NULL: the entry is free */
    _Atomic(unsigned char *) begin;
    atomic_bool struck;
    bool used; /* under the lock */
};

static struct oct_shm_guard guards[MOST_GUARDS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sigaction before; /* written before our handler is in place */

static void pass_on(int number, siginfo_t *info, void *context)
{
    if (before.sa_flags & SA_SIGINFO)
        before.sa_sigaction(number, info, context);
    else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN)
        before.sa_handler(number);
    else
        signal(number, SIG_DFL); /* the access is made again and ends the process */
}

/* Two threads that fault at once both map zeros there, which is harmless. */
static void on_sigbus(int number, siginfo_t *info, void *context)
{
    const unsigned char *at = info->si_addr;
    for (struct oct_shm_guard *g = guards; g < guards + MOST_GUARDS; g++) {
        unsigned char *end = atomic_load(&g->end), *begin = atomic_load(&g->begin);
        if (at < begin || at >= end)
            continue;
        atomic_store(&g->struck, true);
        if (mmap(begin, (size_t)(end - begin), PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) != MAP_FAILED)
            return;
    }
    pass_on(number, info, context);
}

/* Installs the handler if it is not installed, or if another one was set since. Lock held. */
static void install_handler(void)
{
    struct sigaction now, action = {.sa_flags = SA_SIGINFO | SA_NODEFER};
    sigemptyset(&action.sa_mask);
    action.sa_sigaction = on_sigbus;
    sigaction(SIGBUS, NULL, &now);
    if (!(now.sa_flags & SA_SIGINFO) || now.sa_sigaction != on_sigbus) {
        before = now;
        sigaction(SIGBUS, &action, NULL);
    }
}

/* Guards the memory. NULL: too many regions are guarded (at most 16). Any thread. */
static struct oct_shm_guard *shm_guard_begin(void *memory, size_t bytes)
{
    struct oct_shm_guard *guard = guards;
    pthread_mutex_lock(&lock);
    install_handler();
    while (guard < guards + MOST_GUARDS && guard->used)
        guard++;
    if (guard < guards + MOST_GUARDS) {
        guard->used = true;
        atomic_store(&guard->struck, false);
        atomic_store(&guard->begin, memory);
        atomic_store(&guard->end, (unsigned char *)memory + bytes);
    } else {
        guard = NULL;
    }
    pthread_mutex_unlock(&lock);
    return guard;
}

/* Returns whether pages were missing: then the whole memory is private and zero. Any thread. */
static bool shm_guard_struck(const struct oct_shm_guard *guard)
{
    return atomic_load(&guard->struck);
}

/* Ends the guard; call it before the memory is unmapped and after its last reader. NULL is fine. */
static void shm_guard_end(struct oct_shm_guard *guard)
{
    if (!guard)
        return;
    pthread_mutex_lock(&lock);
    atomic_store(&guard->end, NULL);
    guard->used = false;
    pthread_mutex_unlock(&lock);
}

#define TRIES 8 /* two daemons that start together remove each other's file only a few times */
#define BLOCK_BYTES 512 /* of st_blocks */
#define RECLAIM_EVERY_NS 1000000000u
#define RECLAIM_AFTER_NS 2000000000u

struct oct_shm_store {
    char object[OCT_SHM_PATH_BYTES];
    int fd;
    unsigned char *memory;
    size_t bytes;
    struct oct_shm_header header; /* as it must be in the file */
    uint64_t instance, slot_bytes, slots_offset;
    uint32_t n_slots, n_kept;
    struct oct_shm_guard *guard;
    bool is_short;   /* the file was truncated, though no access to the missing pages was made
                        yet */
    bool is_unnamed; /* the name leads elsewhere: no driver finds the file */
    uint64_t n_mended;
    blkcnt_t n_blocks;                       /* of the whole file: fewer are holes */
    bool destroyed;                          /* destroyed; waits only for slots that are kept */
    const struct oct_memory_ops *memory_ops; /* that has adopted the memory; else NULL */
    bool is_adopted;                         /* as was wanted */
    uint64_t last_reclaim_ns, reclaimed;
    uint64_t n_drained; /* times that no message waited */
    struct slot {
        uint32_t kept;      /* so often: the raw ring reads it, whatever its word in the memory
                               says */
        uint64_t word;      /* what the slot holds, */
        uint64_t since_ns;  /* since when, */
        uint64_t n_drained; /* and how often no message waited until then */
    } * slots;              /* [n_slots] */
};

/* ---- the name ---- */

/* Whether the name still means the file behind fd. */
static bool is_named(const char *object, int fd)
{
    struct stat mine, named;
    int other = shm_open(object, O_RDWR | O_CLOEXEC, 0);
    bool same = other >= 0 && fstat(other, &named) == 0 && fstat(fd, &mine) == 0 &&
                named.st_ino == mine.st_ino && named.st_dev == mine.st_dev;
    if (other >= 0)
        close(other);
    return same;
}

/* Removes the file of a daemon that was killed. OCT_E_IO: it belongs to another user or is still
 * served. */
static enum oct_err remove_stale(const char *object, struct oct_error *err)
{
    struct stat st;
    int fd = shm_open(object, O_RDWR | O_CLOEXEC, 0);
    if (fd < 0 && errno == ENOENT)
        return OCT_OK;
    if (fd < 0 || fstat(fd, &st) != 0 || st.st_uid != geteuid()) {
        if (fd >= 0)
            close(fd);
        return oct_fail_key(
            err, OCT_E_IO, "ingest.endpoint",
            "ingest.endpoint: /dev/shm%s belongs to another user and is left alone: "
            "choose another name",
            object);
    }
    /* Locks the file and checks the name again under the lock, so that the file of a daemon that is
     * just starting is not removed. */
    bool locked = oct_shm_lock(fd, OCT_SHM_DAEMON_BYTE);
    if (locked && is_named(object, fd))
        shm_unlink(object);
    close(fd);
    if (!locked)
        return oct_fail_key(
            err, OCT_E_IO, "ingest.endpoint",
            "ingest.endpoint: /dev/shm%s is in use by another octd: stop that one or "
            "choose another name",
            object);
    return OCT_OK;
}

static enum oct_err create_file(struct oct_shm_store *s, mode_t mode, struct oct_error *err)
{
    for (int i = 0; i < TRIES; i++) {
        enum oct_err e = remove_stale(s->object, err);
        if (e)
            return e;
        s->fd = shm_open(s->object, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (s->fd < 0 && errno == EEXIST)
            continue;
        if (s->fd < 0)
            return oct_fail_key_errno(err, OCT_E_IO, "ingest.endpoint", errno,
                                      "ingest.endpoint: cannot make /dev/shm%s", s->object);
        if (oct_shm_lock(s->fd, OCT_SHM_DAEMON_BYTE) && is_named(s->object, s->fd))
            return OCT_OK;
        close(s->fd); /* another octd took it for a stale one in between */
        s->fd = -1;
    }
    return oct_fail_key(err, OCT_E_IO, "ingest.endpoint",
                        "ingest.endpoint: /dev/shm%s is in use by another octd", s->object);
}

static bool is_member(gid_t gid)
{
    gid_t groups[NGROUPS_MAX];
    int n = getgroups(NGROUPS_MAX, groups);
    for (int k = 0; k < n; k++)
        if (groups[k] == gid)
            return true;
    return getegid() == gid;
}

/* Sets them for the path or, if that is NULL, for the file behind fd. Returns 0 or errno. Changes
 * only what differs: a service's system call filter may refuse chown. */
static int set_group_and_mode(const char *path, int fd, gid_t gid, mode_t mode)
{
    struct stat st;
    if ((path ? stat(path, &st) : fstat(fd, &st)) != 0)
        return errno;
    if (st.st_gid != gid && (path ? chown(path, (uid_t)-1, gid) : fchown(fd, (uid_t)-1, gid)) != 0)
        return errno;
    if ((st.st_mode & 0777) != mode && (path ? chmod(path, mode) : fchmod(fd, mode)) != 0)
        return errno;
    return 0;
}

static enum oct_err give_to_group(struct oct_shm_store *s, const char *name, struct oct_error *err)
{
    struct group group, *found = NULL;
    char text[4096];
    int status = getgrnam_r(name, &group, text, sizeof(text), &found);
    if (status || !found)
        return oct_fail_key(err, OCT_E_CONFIG, "ingest.shm_group",
                            "ingest.shm_group: there is no group '%s'", name);
    status = set_group_and_mode(NULL, s->fd, group.gr_gid, 0660);
    if (status == 0)
        return OCT_OK;
    const char *hint = "";
    if (status == EPERM)
        hint = is_member(group.gr_gid)
                   ? " (the system call is refused; under systemd see SystemCallFilter)"
                   : " (octd's user is not a member; under systemd see SupplementaryGroups)";
    return oct_fail_key(err, OCT_E_CONFIG, "ingest.shm_group",
                        "ingest.shm_group: cannot give /dev/shm%s to group '%s': %s%s", s->object,
                        name, strerror(status), hint);
}

/* The name is public already: a driver may truncate the file at any moment. So before the memory is
 * guarded only the kernel accesses it, which reports missing pages as an error. */
static enum oct_err map_file(struct oct_shm_store *s, struct oct_error *err)
{
    void *memory = MAP_FAILED;
    int status;
    do /* Space now, not at the first write: a full /dev/shm shows here and not as a signal. */
        status = posix_fallocate(s->fd, 0, (off_t)s->bytes);
    while (status == EINTR);
    if (!status) {
        memory = mmap(NULL, s->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, s->fd, 0);
        status = memory == MAP_FAILED ? errno : 0;
    }
    if (status)
        return oct_fail_key(err, OCT_E_NO_MEMORY, "ingest.endpoint ingest.queue_messages",
                            "ingest.endpoint: no room for %zu bytes in /dev/shm: %s; lower "
                            "ingest.queue_messages",
                            s->bytes, strerror(status));
    s->memory = memory;
    s->guard = shm_guard_begin(memory, s->bytes);
    if (!s->guard)
        return oct_fail(err, OCT_E_NO_MEMORY, "too many shared memories");
    mlock(memory, s->bytes); /* as the rings are, where the system allows it */
    return OCT_OK;
}

/* Writes the magic last: a driver that finds it finds the rest. */
static void write_header(struct oct_shm_store *s)
{
    struct oct_shm_header header = s->header;
    memset(header.magic, 0, sizeof(header.magic));
    memcpy(s->memory, &header, sizeof(header));
    atomic_thread_fence(memory_order_release);
    memcpy(s->memory, OCT_SHM_MAGIC, sizeof(header.magic));
}

static enum oct_err fill_header(struct oct_shm_store *s, uint32_t n_samples, struct oct_error *err)
{
    struct stat st;
    if (getentropy(&s->instance, sizeof(s->instance)))
        return oct_fail_key_errno(err, OCT_E_IO, "ingest.endpoint", errno,
                                  "ingest.endpoint: no random numbers");
    s->header = (struct oct_shm_header){
        .instance = s->instance,
        .n_slots = s->n_slots,
        .n_samples = n_samples,
        .slot_bytes = s->slot_bytes,
        .slots_offset = s->slots_offset,
    };
    memcpy(s->header.magic, OCT_SHM_MAGIC, sizeof(s->header.magic));
    write_header(s);
    /* Pages beyond the file's end, of a huge page, may go at any time. */
    blkcnt_t whole = (blkcnt_t)(s->bytes / BLOCK_BYTES);
    if (fstat(s->fd, &st) == 0)
        s->n_blocks = st.st_blocks < whole ? st.st_blocks : whole;
    return OCT_OK;
}

static enum oct_err build(struct oct_shm_store *s, const struct oct_shm_options *options,
                          struct oct_error *err)
{
    s->slot_bytes = (options->slot_bytes + OCT_SHM_PAGE - 1) / OCT_SHM_PAGE * OCT_SHM_PAGE;
    s->n_slots = options->n_slots < OCT_SHM_MOST_SLOTS ? options->n_slots : OCT_SHM_MOST_SLOTS;
    s->slots_offset = oct_shm_slots_offset(s->n_slots);
    s->bytes = oct_shm_file_bytes(s->n_slots, s->slot_bytes);
    s->slots = calloc(s->n_slots, sizeof(*s->slots));
    if (!s->bytes || !s->slots)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for %u shared slots", s->n_slots);
    enum oct_err e = create_file(s, 0600, err);
    if (e == OCT_OK && options->group && options->group[0])
        e = give_to_group(s, options->group, err);
    if (e == OCT_OK)
        e = map_file(s, err);
    if (e == OCT_OK && options->memory && options->memory->adopt(s->memory, s->bytes))
        s->memory_ops = options->memory;
    s->is_adopted = s->memory_ops || !options->memory;
    if (e == OCT_OK)
        e = fill_header(s, options->n_samples, err);
    return e;
}

enum oct_err oct_shm_store_create(struct oct_shm_store **out, const struct oct_shm_options *options,
                                  struct oct_error *err)
{
    *out = NULL;
    const char *bad = oct_shm_bad_name(options->name);
    if (bad)
        return oct_fail_key(err, OCT_E_CONFIG, "ingest.endpoint", "ingest.endpoint: 'shm://%s' %s",
                            options->name, bad);
    struct oct_shm_store *s = calloc(1, sizeof(*s));
    if (!s)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for shared lines");
    s->fd = -1;
    oct_shm_object_of(options->name, s->object);
    enum oct_err e = build(s, options, err);
    if (e) {
        oct_shm_store_destroy(s);
        return e;
    }
    *out = s;
    return OCT_OK;
}

enum oct_err oct_shm_store_share(const struct oct_shm_store *s, const char *socket_path,
                                 struct oct_error *err)
{
    struct stat st;
    int status = fstat(s->fd, &st) ? errno : 0;
    if (status == 0)
        status = set_group_and_mode(socket_path, -1, st.st_gid, st.st_mode & 0777);
    return status ? oct_fail_key_errno(err, OCT_E_IO, "ingest.endpoint", status,
                                       "ingest.endpoint: %s", socket_path)
                  : OCT_OK;
}

static void free_store(struct oct_shm_store *s)
{
    shm_guard_end(s->guard);
    if (s->memory_ops)
        s->memory_ops->release(s->memory, s->bytes);
    else if (s->memory)
        munmap(s->memory, s->bytes);
    free(s->slots);
    free(s);
}

void oct_shm_store_destroy(struct oct_shm_store *s)
{
    if (!s)
        return;
    if (s->fd >= 0) {
        if (is_named(s->object, s->fd))
            shm_unlink(s->object);
        /* Shows the drivers that the file is no longer served. Closing is not enough: the memory
         * holds the open file, and the lock, until the last slot was given back. */
        oct_shm_unlock(s->fd, OCT_SHM_DAEMON_BYTE);
        close(s->fd);
    }
    s->destroyed = true;
    if (s->n_kept == 0)
        free_store(s);
}

/* ---- slots ---- */

static _Atomic(uint64_t) *word_of(struct oct_shm_store *s, uint32_t slot)
{
    return (_Atomic(uint64_t) *)(void *)(s->memory + OCT_SHM_PAGE + slot * sizeof(uint64_t));
}

static enum oct_bad find_slot(struct oct_shm_store *s, const struct oct_lines_header *h,
                              const void *descriptor, size_t descriptor_bytes,
                              struct oct_shm_block *block)
{
    struct oct_shm_descriptor d;
    uint64_t bytes = oct_lines_payload_bytes(h);
    if (!oct_shm_descriptor_decode(&d, descriptor, descriptor_bytes))
        return OCT_BAD_SLOT;
    if (d.instance != s->instance || d.slot >= s->n_slots || s->slots[d.slot].kept)
        return OCT_BAD_SLOT;
    block->tag = oct_shm_tag(h->epoch, h->sequence);
    if (atomic_load_explicit(word_of(s, d.slot), memory_order_acquire) != block->tag)
        return OCT_BAD_SLOT; /* it belongs to another message, or was given back already */
    block->slot = d.slot;
    block->in_slot = true; /* must be given back, even when the rest is wrong */
    if (bytes > s->slot_bytes)
        return OCT_BAD_PAYLOAD_SIZE;
    block->payload = s->memory + s->slots_offset + d.slot * s->slot_bytes;
    block->bytes = (size_t)bytes;
    return OCT_BAD_NONE;
}

enum oct_bad oct_shm_store_look(struct oct_shm_store *s, const void *header, size_t header_bytes,
                                const void *descriptor, size_t descriptor_bytes,
                                struct oct_shm_block *block)
{
    struct oct_lines_header h;
    *block = (struct oct_shm_block){.payload = ""};
    enum oct_bad bad = oct_lines_decode(&h, header, header_bytes);
    if (bad)
        return bad;
    if (h.n_lines == 0)
        return descriptor_bytes ? OCT_BAD_PAYLOAD_SIZE : OCT_BAD_NONE;
    return find_slot(s, &h, descriptor, descriptor_bytes, block);
}

bool oct_shm_store_is_broken(const struct oct_shm_store *s)
{
    return s->is_short || shm_guard_struck(s->guard);
}

bool oct_shm_store_is_unnamed(const struct oct_shm_store *s)
{
    return s->is_unnamed;
}

uint64_t oct_shm_store_mended(const struct oct_shm_store *s)
{
    return s->n_mended;
}

void oct_shm_store_release(struct oct_shm_store *s, const struct oct_shm_block *block)
{
    uint64_t tag = block->tag;
    if (block->in_slot)
        atomic_compare_exchange_strong(word_of(s, block->slot), &tag, 0);
}

void oct_shm_store_keep(struct oct_shm_store *s, const struct oct_shm_block *block)
{
    uint64_t tag = block->tag;
    if (s->slots[block->slot].kept++ > 0)
        return;
    atomic_compare_exchange_strong(word_of(s, block->slot), &tag, OCT_SHM_KEPT);
    s->n_kept++;
}

bool oct_shm_store_is_adopted(const struct oct_shm_store *s)
{
    return s->is_adopted;
}

void oct_shm_store_give_back(struct oct_shm_store *s, uint32_t slot)
{
    if (--s->slots[slot].kept > 0)
        return;
    s->n_kept--;
    if (s->destroyed && s->n_kept == 0)
        free_store(s);
    else
        atomic_store(word_of(s, slot), 0);
}

void oct_shm_store_drained(struct oct_shm_store *s)
{
    s->n_drained++;
}

/* While a recording delays everything, valid messages wait long too: time alone does not show that
 * a driver died. */
static void reclaim_slot(struct oct_shm_store *s, uint32_t k, uint64_t now_ns)
{
    struct slot *slot = &s->slots[k];
    if (slot->kept) /* its word was overwritten by others: drivers must not see it as free */
        atomic_store(word_of(s, k), OCT_SHM_KEPT);
    uint64_t word = atomic_load(word_of(s, k));
    if (word == 0 || slot->kept || slot->word != word) {
        slot->word = slot->kept ? 0 : word;
        slot->since_ns = now_ns;
        slot->n_drained = s->n_drained;
    } else if (now_ns - slot->since_ns >= RECLAIM_AFTER_NS && s->n_drained != slot->n_drained &&
               !oct_shm_is_locked(s->fd, OCT_SHM_SLOT_BYTE(k)) &&
               atomic_compare_exchange_strong(word_of(s, k), &word, 0)) {
        slot->word = 0;
        s->reclaimed++;
    }
}

/* ---- the file, which others may have changed ---- */

/* Drivers attach by the header and the file's size. A file that was truncated and extended again
 * has holes, which take space when they are written to: that space is reserved here. */
static void mend(struct oct_shm_store *s, const struct stat *st)
{
    bool too_long = (uint64_t)st->st_size > s->bytes, has_holes = st->st_blocks < s->n_blocks;
    bool overwritten = memcmp(s->memory, &s->header, sizeof(s->header)) != 0;
    if (!too_long && !has_holes && !overwritten)
        return;
    if ((too_long && ftruncate(s->fd, (off_t)s->bytes) != 0) ||
        (has_holes && posix_fallocate(s->fd, 0, (off_t)s->bytes) != 0)) {
        s->is_short = true;
        return;
    }
    if (overwritten)
        write_header(s);
    s->n_mended++;
}

static void look_at_file(struct oct_shm_store *s)
{
    struct stat mine, named;
    char path[OCT_SHM_PATH_BYTES + sizeof("/dev/shm")];
    snprintf(path, sizeof(path), "/dev/shm%s", s->object);
    if (fstat(s->fd, &mine) != 0)
        return;
    s->is_unnamed =
        lstat(path, &named) != 0 || named.st_ino != mine.st_ino || named.st_dev != mine.st_dev;
    s->is_short = (uint64_t)mine.st_size < s->bytes;
    if (!oct_shm_store_is_broken(s))
        mend(s, &mine);
}

void oct_shm_store_reclaim(struct oct_shm_store *s, uint64_t now_ns)
{
    if (now_ns - s->last_reclaim_ns < RECLAIM_EVERY_NS)
        return;
    s->last_reclaim_ns = now_ns;
    look_at_file(s);
    for (uint32_t k = 0; k < s->n_slots; k++)
        reclaim_slot(s, k, now_ns);
}

uint64_t oct_shm_store_reclaimed(const struct oct_shm_store *s)
{
    return s->reclaimed;
}
