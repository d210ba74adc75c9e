#include "viewer/model/daemon.h"

#include "viewer/model/words.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define MOST_JSON_BYTES (1u << 20)

static const cJSON *item(const cJSON *object, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(object, key);
}

/* Returns a number that can be a count or a length (finite, not negative), else `otherwise`. */
static double number(const cJSON *object, const char *key, double otherwise)
{
    const cJSON *value = item(object, key);
    if (!cJSON_IsNumber(value) || !isfinite(value->valuedouble) || value->valuedouble < 0)
        return otherwise;
    return value->valuedouble;
}

static double length_um(const cJSON *scan, const char *key)
{
    double um = number(scan, key, NAN);
    return um >= 1e-6 && um <= 1e6 ? um : NAN;
}

static void text(const cJSON *object, const char *key, char *to, size_t n_bytes)
{
    const char *from = cJSON_GetStringValue(item(object, key));
    snprintf(to, n_bytes, "%s", from ? from : "");
    oct_view_letters_clean(to);
}

static void last_part(const char *path, char *to, size_t n_bytes)
{
    const char *slash = strrchr(path, '/');
    snprintf(to, n_bytes, "%.*s", (int)n_bytes - 1, slash ? slash + 1 : path);
    oct_view_letters_clean(to); /* it may be cut within a letter */
}

static double sum_of(const cJSON *counts)
{
    double sum = 0;
    const cJSON *count;
    cJSON_ArrayForEach(count, counts)
    {
        if (cJSON_IsNumber(count) && isfinite(count->valuedouble) && count->valuedouble > 0)
            sum += count->valuedouble;
    }
    return sum;
}

static bool has_word(const cJSON *words, const char *word)
{
    const cJSON *each;
    bool found = false;
    cJSON_ArrayForEach(each, words)
    {
        found |= cJSON_IsString(each) && strcmp(each->valuestring, word) == 0;
    }
    return found;
}

/* Reads what is not as it should be, but for what is read elsewhere: of `source` the window sees
 * itself that nothing comes. */
static void read_troubles(struct oct_view_daemon *d, const cJSON *words)
{
    static const char *const elsewhere[] = {"source", "source_refused", "disk", "recording"};
    const cJSON *each;
    cJSON_ArrayForEach(each, words)
    {
        const char *word = cJSON_GetStringValue(each);
        bool is_told = !word || !word[0] || d->n_troubles == OCT_VIEW_MOST_TROUBLES;
        for (size_t i = 0; i < sizeof(elsewhere) / sizeof(elsewhere[0]) && !is_told; i++)
            is_told = strcmp(word, elsewhere[i]) == 0;
        if (is_told)
            continue;
        char *to = d->trouble[d->n_troubles++];
        snprintf(to, sizeof(d->trouble[0]), "%s", word);
        oct_view_letters_clean(to);
    }
}

static void read_analyses(struct oct_view_daemon *d, const cJSON *rows)
{
    const cJSON *each;
    d->analyses_told = cJSON_IsArray(rows);
    cJSON_ArrayForEach(each, rows)
    {
        if (d->n_analyses == OCT_VIEW_MOST_ANALYSES)
            return;
        struct oct_view_analysis *a = &d->analysis[d->n_analyses++];
        *a = (struct oct_view_analysis){
            .late_share = number(each, "late_share", NAN),
            .bscan_ms = number(each, "bscan_ms", NAN),
            .late = cJSON_IsTrue(item(each, "late")),
            .at_rest = cJSON_IsTrue(item(each, "at_rest")),
            .failing = cJSON_IsTrue(item(each, "failing")),
        };
        text(each, "name", a->name, sizeof(a->name));
        text(each, "error", a->error, sizeof(a->error));
    }
}

const struct oct_view_analysis *oct_view_daemon_analysis(const struct oct_view_daemon *d,
                                                         const char *name)
{
    for (unsigned i = 0; i < d->n_analyses; i++)
        if (strcmp(d->analysis[i].name, name) == 0)
            return &d->analysis[i];
    return NULL;
}

/* Reads how many B-scans a recording was offered that its files lack (docs/recordings.md, the
 * account). */
static void read_lost(struct oct_view_daemon *d, const cJSON *account)
{
    const cJSON *count, *dropped = item(account, "dropped");
    char *to = d->record.lost_text;
    size_t used = 0, n_bytes = sizeof(d->record.lost_text);
    double most = 0;
    d->record.n_lost = sum_of(dropped);
    cJSON_ArrayForEach(count, dropped)
    {
        if (!cJSON_IsNumber(count) || !(count->valuedouble > 0 && count->valuedouble < 1e18) ||
            !count->string)
            continue;
        if (used < n_bytes)
            used += (size_t)snprintf(to + used, n_bytes - used, "%s%.0f %.30s", used ? ", " : "",
                                     count->valuedouble, oct_view_loss_words(count->string));
        if (count->valuedouble > most)
            snprintf(d->record.lost_why, sizeof(d->record.lost_why), "%s", count->string);
        most = fmax(most, count->valuedouble);
    }
    oct_view_letters_clean(to); /* names of keys are outside bytes too */
    oct_view_letters_clean(d->record.lost_why);
}

static void read_record(struct oct_view_daemon *d, const cJSON *reply)
{
    const cJSON *record = item(reply, "record");
    d->record.active = cJSON_IsTrue(item(record, "active"));
    d->record.stopping = cJSON_IsTrue(item(record, "stopping"));
    d->record.waiting_for_volume = cJSON_IsTrue(item(record, "waiting_for_volume"));
    d->record.elapsed_s = number(record, "elapsed_s", 0);
    d->record.bscans_in_file = number(record, "bscans_in_file", 0);
    d->record.bscans_waiting = number(record, "bscans_waiting", 0);
    d->record.volumes_written = number(reply, "volumes_written", 0);
    d->record.volumes_incomplete = number(reply, "volumes_incomplete", 0);
    /* One that runs may have its own. */
    d->record.volumes = number(record, d->record.active ? "volumes" : "volumes_set", NAN);
    d->record.disk_left_s = number(record, "disk_left_s", NAN);
    read_lost(d, item(reply, "record_account"));
    text(record, "eye", d->record.eye, sizeof(d->record.eye));
    text(record, "pseudonym", d->record.pseudonym, sizeof(d->record.pseudonym));
    text(record, "file", d->record.path, sizeof(d->record.path));
    last_part(d->record.path, d->record.file, sizeof(d->record.file));
}

static void read_last(struct oct_view_daemon *d, const cJSON *reply)
{
    const cJSON *last = item(reply, "record_last");
    d->last.bscans_most = number(last, "bscans_most", 0);
    d->last.length_s = number(last, "length_s", 0);
    d->last.saving = cJSON_IsTrue(item(last, "saving"));
    d->last.n_lost = number(last, "bscans_lost", 0);
    text(last, "file", d->last.path, sizeof(d->last.path));
    last_part(d->last.path, d->last.file, sizeof(d->last.file));
    text(last, "error", d->last.error, sizeof(d->last.error));
}

static void read_driver(struct oct_view_daemon *d, const cJSON *reply)
{
    const cJSON *fault = item(item(reply, "source"), "fault");
    if (!has_word(item(reply, "degraded"), "source_refused"))
        return;
    text(fault, "text", d->driver.text, sizeof(d->driver.text));
    text(fault, "cure", d->driver.cure, sizeof(d->driver.cure));
    text(fault, "plain", d->driver.plain, sizeof(d->driver.plain));
}

static bool read_share(const cJSON *object, const char *key, double *share)
{
    *share = number(object, key, NAN);
    return *share <= 1;
}

/* A row of the analyses: its settings stand there under their names. */
static const cJSON *row_named(const cJSON *reply, const char *wanted)
{
    const cJSON *each, *row = NULL;
    cJSON_ArrayForEach(each, item(reply, "analysis"))
    {
        const char *name = cJSON_GetStringValue(item(each, "name"));
        if (name && strcmp(name, wanted) == 0)
            row = each;
    }
    return row;
}

static void read_flow(struct oct_view_daemon *d, const cJSON *reply)
{
    const cJSON *row = row_named(reply, "flow");
    text(row, "slab", d->flow.slab, sizeof(d->flow.slab));
    d->flow.max_bulk = number(row, "max_bulk", NAN);
}

static void read_enface(struct oct_view_daemon *d, const cJSON *reply)
{
    const cJSON *row = row_named(reply, OCT_VIEW_TOPIC_ENFACE);
    struct oct_view_enface_settings s = {.projection = OCT_N_PROJECTIONS};
    const char *projection = cJSON_GetStringValue(item(row, "projection"));
    for (int i = 0; projection && i < OCT_N_PROJECTIONS; i++)
        if (strcmp(projection, oct_view_projection_keys[i]) == 0)
            s.projection = (enum oct_projection)i;
    d->has_enface = row != NULL;
    d->enface_told = read_share(row, "slab_first", &s.slab.first) &&
                     read_share(row, "slab_last", &s.slab.last) && s.slab.first < s.slab.last &&
                     s.projection != OCT_N_PROJECTIONS;
    if (d->enface_told)
        d->enface = s;
}

static void read_errand(struct oct_view_daemon *d, const cJSON *reply)
{
    const cJSON *errand = item(reply, "errand");
    d->errand.number = number(errand, "number", 0);
    d->errand.pending = cJSON_IsTrue(item(errand, "pending"));
    text(errand, "error", d->errand.why, sizeof(d->errand.why));
    if (!d->errand.why[0])
        text(item(errand, "result"), "why", d->errand.why, sizeof(d->errand.why));
}

static uint32_t count_of(const cJSON *object, const char *name)
{
    const double n = number(object, name, 0);
    return n >= 1 && n <= OCT_MAX_BSCANS ? (uint32_t)n : 0;
}

/* A number below 0 too. */
static double signed_number(const cJSON *object, const char *key)
{
    const cJSON *value = item(object, key);
    return cJSON_IsNumber(value) && isfinite(value->valuedouble) ? value->valuedouble : 0;
}

/* The way of the scan. */
static void read_scan(struct oct_scan *s, const cJSON *scan, const cJSON *geometry)
{
    char pattern[16];
    text(scan, "pattern", pattern, sizeof(pattern));
    *s = (struct oct_scan){
        .n_lines = count_of(geometry, "lines"),
        .n_bscans = count_of(geometry, "bscans"),
        .protocol = {.repeats = count_of(scan, "repeats")},
        .width_um = number(scan, "width_um", 0),
        .height_um = number(scan, "height_um", 0),
        .centre_um = {signed_number(scan, "centre_x_um"), signed_number(scan, "centre_y_um")},
        .angle_deg = signed_number(scan, "angle_deg"),
    };
    for (int i = 0; oct_scan_pattern_names[i]; i++)
        if (strcmp(pattern, oct_scan_pattern_names[i]) == 0)
            s->pattern = (enum oct_scan_pattern)i;
}

/* The site's list; a name that has no room could not be asked for, and is left out. */
static void read_scans(struct oct_view_daemon *d, const cJSON *scan)
{
    const cJSON *each, *choice = item(scan, "choice");
    d->scans.has_number = cJSON_IsNumber(item(scan, "number"));
    d->scans.number = number(scan, "number", 0);
    d->scans.is_listed = !cJSON_IsNull(choice);
    text(scan, "refused", d->scans.refused, sizeof(d->scans.refused));
    text(scan, "choice", d->scans.running, sizeof(d->scans.running));
    cJSON_ArrayForEach(each, item(scan, "choices"))
    {
        const char *name = cJSON_GetStringValue(each);
        if (name && name[0] && strlen(name) < OCT_VIEW_SCAN_NAME_BYTES &&
            oct_view_letters_are(name) && d->scans.n < OCT_VIEW_MOST_SCANS)
            snprintf(d->scans.name[d->scans.n++], OCT_VIEW_SCAN_NAME_BYTES, "%s", name);
    }
}

static void read_all(struct oct_view_daemon *d, const cJSON *reply)
{
    const cJSON *scan = item(reply, "scan"), *pixels = item(reply, "pixels");
    char from[16];
    /* A line rate that nobody configured is octd's own measurement of this camera, some seconds
     * old. */
    text(scan, "line_rate_from", from, sizeof(from));
    bool set = strcmp(from, "config") == 0;
    *d = (struct oct_view_daemon){
        .known = true,
        .reachable = d->reachable,
        .answer_ns = d->answer_ns,
        .pending = cJSON_IsTrue(item(reply, "pending")),
        .disk_slow = has_word(item(reply, "degraded"), "disk"),
        .record.failed = has_word(item(reply, "degraded"), "recording"),
        .pid = number(reply, "pid", 0),
        .uptime_s = number(reply, "uptime_s", 0),
        .acquisitions = number(reply, "acquisitions", 0),
        .lines_received = number(reply, "lines_received", 0),
        .lines_missing = number(reply, "lines_missing", 0) - number(reply, "lines_cut", 0),
        .bscans_dropped = sum_of(item(reply, "bscans_dropped")),
        .latency_p50_us = number(item(reply, "latency_us"), "p50", 0),
        .axial_um = length_um(scan, "axial_um"),
        .lateral_um = length_um(scan, "lateral_um"),
        .slow_um = length_um(scan, "slow_um"),
        .repeats = number(scan, "repeats", 0),
        .set_line_rate_hz = set ? number(scan, "line_rate_hz", 0) : 0,
        .lines = number(item(reply, "geometry"), "lines", 0),
        .pixels_told = cJSON_IsBool(item(pixels, "log")),
        .log = cJSON_IsTrue(item(pixels, "log")),
        .average_bscans = number(item(reply, "average"), "bscans", 0),
        .saturation = number(pixels, "saturation", 0),
        .disk_bytes_free = number(reply, "disk_bytes_free", NAN),
    };
    read_scan(&d->scan, scan, item(reply, "geometry"));
    read_scans(d, scan);
    text(reply, "state", d->state, sizeof(d->state));
    text(reply, "last_error", d->last_error, sizeof(d->last_error));
    read_driver(d, reply);
    read_troubles(d, item(reply, "degraded"));
    read_analyses(d, item(reply, "analysis"));
    read_enface(d, reply);
    read_flow(d, reply);
    read_record(d, reply);
    read_last(d, reply);
    read_errand(d, reply);
}

enum oct_err oct_view_daemon_read(struct oct_view_daemon *daemon, const char *json, size_t n_bytes,
                                  struct oct_error *err)
{
    cJSON *reply = n_bytes <= MOST_JSON_BYTES ? cJSON_ParseWithLength(json, n_bytes) : NULL;
    enum oct_err code = OCT_OK;
    if (cJSON_IsObject(reply) && cJSON_IsTrue(item(reply, "ok")) &&
        cJSON_IsString(item(reply, "state")))
        read_all(daemon, reply);
    else
        code = oct_fail(err, OCT_E_FORMAT, "what answers is no octd: check control.endpoint");
    cJSON_Delete(reply);
    return code;
}
