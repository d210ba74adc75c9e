#include "tools/files/followed.h"

#include "pipeline/plan/geometry.h"
#include "tools/alloc.h"
#include "tools/commands.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

#define TOPIC "scan"
#define MOST_PART_BYTES 65536
#define PI 3.14159265358979323846

/* ---- the scan ---- */

struct oct_scan_follower {
    void *context, *socket;
    struct oct_followed_scan last;
};

enum oct_err oct_scan_follower_create(struct oct_scan_follower **out, const char *endpoint,
                                      const struct oct_curve_files *keys, struct oct_error *err)
{
    const int none = 0;
    const int64_t most_bytes = MOST_PART_BYTES;
    struct oct_scan_follower *f = calloc(1, sizeof(*f));
    *out = f;
    if (!f)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a subscription");
    enum oct_err e = OCT_OK;
    f->context = zmq_ctx_new();
    f->socket = f->context ? zmq_socket(f->context, ZMQ_SUB) : NULL;
    if (!f->socket)
        e = oct_fail(err, OCT_E_IO, "subscription: %s", zmq_strerror(errno));
    e = e ? e : oct_curve_set_client(f->socket, keys, err);
    if (!e) {
        zmq_setsockopt(f->socket, ZMQ_LINGER, &none, sizeof(none));
        zmq_setsockopt(f->socket, ZMQ_MAXMSGSIZE, &most_bytes, sizeof(most_bytes));
        zmq_setsockopt(f->socket, ZMQ_SUBSCRIBE, TOPIC, strlen(TOPIC));
        if (zmq_connect(f->socket, endpoint) < 0)
            e = oct_fail(err, OCT_E_CONFIG, "publish.endpoint '%s': %s", endpoint,
                         zmq_strerror(errno));
    }
    if (e) {
        oct_scan_follower_destroy(f);
        *out = NULL;
    }
    return e;
}

void oct_scan_follower_destroy(struct oct_scan_follower *f)
{
    if (!f)
        return;
    if (f->socket)
        zmq_close(f->socket);
    if (f->context)
        zmq_ctx_term(f->context);
    free(f);
}

/* A whole number from least on that fits. */
static bool whole_of(const cJSON *from, const char *key, double least, uint32_t *value)
{
    const double x = oct_json_number(from, key);
    const bool fits = x >= least && x <= UINT32_MAX && x == floor(x);
    *value = fits ? (uint32_t)x : 0;
    return fits;
}

static bool number_of(const cJSON *from, const char *key, double *value)
{
    *value = oct_json_number(from, key);
    return isfinite(*value);
}

static bool read_pattern(const cJSON *from, enum oct_scan_pattern *pattern)
{
    const char *name = oct_json_text(from, "pattern");
    for (int i = 0; name && oct_scan_pattern_names[i]; i++)
        if (i != OCT_SCAN_FILE && strcmp(oct_scan_pattern_names[i], name) == 0) {
            *pattern = (enum oct_scan_pattern)i;
            return true;
        }
    return false;
}

static bool read_epochs(const cJSON *from, struct oct_followed_scan *f)
{
    const cJSON *epochs = cJSON_GetObjectItemCaseSensitive(from, "epochs");
    const double first = cJSON_GetNumberValue(cJSON_GetArrayItem(epochs, 0));
    const double last = cJSON_GetNumberValue(cJSON_GetArrayItem(epochs, 1));
    if (!(first >= 0 && first <= last && last <= UINT32_MAX))
        return false;
    f->first_epoch = (uint32_t)first;
    f->last_epoch = (uint32_t)last;
    return true;
}

static bool read_scan(const cJSON *from, struct oct_followed_scan *f)
{
    struct oct_scan *s = &f->scan;
    uint32_t n_volumes;
    *f = (struct oct_followed_scan){.number = 0};
    if (!read_epochs(from, f) || !read_pattern(from, &s->pattern) ||
        !whole_of(from, "number", 0, &f->number) || !whole_of(from, "volumes", 0, &n_volumes) ||
        !whole_of(from, "lines", 1, &s->n_lines) || !whole_of(from, "bscans", 1, &s->n_bscans) ||
        !whole_of(from, "flyback_lines", 0, &s->flyback_lines) ||
        !whole_of(from, "repeats", 1, &s->protocol.repeats) ||
        !whole_of(from, "interleave", 1, &s->protocol.interleave) ||
        !whole_of(from, "line_repeats", 1, &s->protocol.line_repeats) ||
        !number_of(from, "width_um", &s->width_um) ||
        !number_of(from, "height_um", &s->height_um) ||
        !number_of(from, "centre_x_um", &s->centre_um[0]) ||
        !number_of(from, "centre_y_um", &s->centre_um[1]) ||
        !number_of(from, "angle_deg", &s->angle_deg) ||
        !number_of(from, "phase_deg", &s->phase_deg) ||
        !number_of(from, "trigger_delay_lines", &s->delay_lines))
        return false;
    f->n_volumes = n_volumes;
    f->ends = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(from, "ends"));
    return s->n_lines <= OCT_MAX_LINES && s->n_bscans <= OCT_MAX_BSCANS &&
           s->flyback_lines <= OCT_MAX_LINES && oct_scan_check(s, NULL) == OCT_OK;
}

/* The second part of the next message. */
static cJSON *next_announcement(struct oct_scan_follower *f)
{
    cJSON *text = NULL;
    for (int i = 0, more = 1; more; i++) {
        zmq_msg_t part;
        zmq_msg_init(&part);
        const int n = zmq_msg_recv(&part, f->socket, ZMQ_DONTWAIT);
        if (n >= 0 && i == 1)
            text = cJSON_ParseWithLength(zmq_msg_data(&part), zmq_msg_size(&part));
        more = n >= 0 && zmq_msg_more(&part);
        zmq_msg_close(&part);
    }
    return text;
}

bool oct_scan_follower_look(struct oct_scan_follower *f, int wait_ms,
                            struct oct_followed_scan *followed)
{
    zmq_pollitem_t item = {f->socket, 0, ZMQ_POLLIN, 0};
    bool is_new = false;
    for (int ms = wait_ms; zmq_poll(&item, 1, ms) > 0; ms = 0) {
        struct oct_followed_scan came;
        cJSON *text = next_announcement(f);
        if (read_scan(text, &came) &&
            (came.number != f->last.number || came.first_epoch != f->last.first_epoch ||
             came.ends != f->last.ends)) {
            f->last = *followed = came;
            is_new = true;
        }
        cJSON_Delete(text);
    }
    return is_new;
}

/* ---- the eye ---- */

static enum oct_err read_volume(struct oct_scanned_eye *eye, struct oct_recording *recording,
                                struct oct_error *err)
{
    const struct oct_scan *s = &eye->scan;
    enum oct_err e = OCT_OK;
    uint8_t *line_valid = malloc(s->n_lines);
    if (!line_valid)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a volume");
    for (uint32_t b = 0; b < s->n_bscans && !e; b++) {
        struct oct_raw_frame frame = {.spectra =
                                          eye->samples + (size_t)b * s->n_lines * eye->n_samples,
                                      .line_valid = line_valid};
        bool valid;
        e = oct_recording_read(recording, b, &frame, &valid, err);
    }
    free(line_valid);
    return e;
}

enum oct_err oct_scanned_eye_read(struct oct_scanned_eye *eye, struct oct_recording *recording,
                                  const struct oct_scan *scan, uint64_t most_bytes,
                                  struct oct_error *err)
{
    const uint64_t n_bscans = oct_recording_n_bscans(recording);
    *eye = (struct oct_scanned_eye){.scan = *scan, .n_samples = oct_recording_n_samples(recording)};
    eye->scan.n_bscans = oct_recording_bscans_per_volume(recording);
    const uint64_t n_lines = (uint64_t)eye->scan.n_bscans * scan->n_lines;
    if (!oct_scan_is_raster(scan) || !(scan->width_um > 0 && scan->height_um > 0) ||
        n_bscans < eye->scan.n_bscans)
        return oct_fail(err, OCT_E_CONFIG,
                        "%s: --follow needs a whole raster volume of a known field (scan.width_um, "
                        "scan.height_um), from which other scans are made",
                        oct_recording_name(recording));
    if (n_lines * eye->n_samples * sizeof(uint16_t) > most_bytes)
        return oct_fail(err, OCT_E_CONFIG, "%s: --follow holds a volume of at most %" PRIu64 " MiB",
                        oct_recording_name(recording), most_bytes >> 20);
    eye->samples = calloc(n_lines * eye->n_samples, sizeof(uint16_t));
    if (!eye->samples)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a volume");
    return read_volume(eye, recording, err);
}

void oct_scanned_eye_finish(struct oct_scanned_eye *eye)
{
    free(eye->samples);
    eye->samples = NULL;
}

/* The part of n, from 0, in which a share lies. */
static uint32_t part_of(double share, uint32_t n)
{
    const double part = floor(share * n);
    return part < 0 ? 0 : part >= n ? n - 1 : (uint32_t)part;
}

static const uint16_t *nearest_line(const struct oct_scanned_eye *eye, const double um[2])
{
    const struct oct_scan *s = &eye->scan;
    const double angle = s->angle_deg * PI / 180, c = cos(angle), sine = sin(angle);
    const double dx = um[0] - s->centre_um[0], dy = um[1] - s->centre_um[1];
    const uint32_t line_repeats = s->protocol.line_repeats > 1 ? s->protocol.line_repeats : 1;
    const uint32_t repeats = s->protocol.repeats > 1 ? s->protocol.repeats : 1;
    const uint32_t point =
        part_of((c * dx + sine * dy) / s->width_um + 0.5, s->n_lines / line_repeats);
    const uint32_t place =
        part_of((c * dy - sine * dx) / s->height_um + 0.5, s->n_bscans / repeats);
    const size_t line =
        (size_t)oct_scan_bscan(s, place) * s->n_lines + (size_t)point * line_repeats;
    return eye->samples + line * eye->n_samples;
}

const uint16_t *oct_scanned_eye_sent(const struct oct_scanned_eye *eye, const struct oct_scan *scan,
                                     uint64_t i)
{
    const uint32_t sent = oct_scan_sent_lines(scan);
    double um[2];
    oct_scan_way(scan, (uint32_t)(i / sent % scan->n_bscans),
                 (double)(i % sent) - scan->delay_lines, um);
    return nearest_line(eye, um);
}
