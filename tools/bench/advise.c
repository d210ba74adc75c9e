/* octctl bench --advise: short measurements of each part that a line passes, by the configuration,
 * and the one to change first. */
#include "tools/bench/advise.h"

#include "config/apply.h"
#include "kernels/engines.h"
#include "pipeline/base/clock.h"
#include "pipeline/flow/forecast.h"
#include "pipeline/record/settings.h"
#include "pipeline/wire/shm_layout.h"
#include "tools/bench/part.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cjson/cJSON.h>
#include <zmq.h>

#define PART_S 0.8 /* for each figure */
#define MOST_PARTS 12u
#define ENOUGH_SHARE 0.9 /* of what a part can take: more leaves nothing for a moment's load */

/* ---- conclusions ---- */

int oct_advise_wall(const struct oct_advise_part *parts, unsigned n)
{
    int wall = -1;
    for (unsigned i = 0; i < n; i++) {
        const struct oct_advise_part *p = &parts[i];
        if (!p->is_used || p->hz <= 0 || p->kind == OCT_WALL_VIEWER)
            continue;
        if (wall < 0 || p->hz < parts[wall].hz ||
            (p->hz <= parts[wall].hz && p->kind < parts[wall].kind))
            wall = (int)i;
    }
    return wall;
}

static const char *advise_samples(const struct oct_advise_facts *facts, const char *otherwise)
{
    return facts->bits <= 8    ? "send samples as u8, half of the bytes"
           : facts->bits <= 12 ? "send samples as the camera has them (Mono12p), three quarters of "
                                 "the bytes; camera.bits says that they have 12"
                               : otherwise;
}

static const char *advise_cpu(const struct oct_advise_facts *facts)
{
    if (facts->has_gpu)
        return "pipeline.backend = auto: a GPU answers here";
    if (facts->few_threads)
        return "pipeline.threads = 0: all cores compute";
    if (facts->all_depths)
        return "pipeline.crop_last: leave out the depths that nobody needs";
    return "a GPU, or more cores";
}

static const char *advise_gpu(const struct oct_advise_facts *facts)
{
    if (facts->is_f32)
        return "output.sample = u8: a quarter of the bytes back over the bus";
    return advise_samples(facts, facts->all_depths
                                     ? "pipeline.crop_last: leave out the depths that nobody needs"
                                     : "a second GPU (pipeline.gpus), each on a bus of its own");
}

static const char *advise_disk(const struct oct_advise_facts *facts)
{
    if (facts->records_bscans)
        return "record.bscans = no: octctl recon makes them again from the spectra";
    if (!facts->records_as_sent && facts->bits <= 12)
        return "record.spectra = as_sent, with samples sent as the camera has them";
    return "a faster disk for record.directory, or several as one (RAID 0)";
}

void oct_advise_text(enum oct_wall wall, const struct oct_advise_facts *facts, char *text,
                     size_t text_bytes)
{
    const char *what = "";
    switch (wall) {
    case OCT_WALL_TRANSPORT:
        what =
            "ingest.endpoint = shm://NAME, with the driver on this machine: no byte goes through "
            "the kernel";
        break;
    case OCT_WALL_SHM:
        what = "the driver fills slots in place (oct_client_borrow), and several B-scans at once "
               "(ingest.slot_bscans)";
        break;
    case OCT_WALL_MEMORY:
        what = advise_samples(facts, "faster memory, or one module in each of its channels");
        break;
    case OCT_WALL_CPU:
        what = advise_cpu(facts);
        break;
    case OCT_WALL_GPU:
        what = advise_gpu(facts);
        break;
    case OCT_WALL_DISK:
        what = advise_disk(facts);
        break;
    case OCT_WALL_VIEWER:
    case OCT_N_WALLS:
        what = "nothing";
        break;
    }
    snprintf(text, text_bytes, "%s", what);
}

/* ---- measurements ---- */

struct parts {
    struct oct_advise_part part[MOST_PARTS];
    unsigned n;
};

static void add_part(struct parts *parts, enum oct_wall kind, bool is_used, double hz,
                     const char *name)
{
    struct oct_advise_part *p = &parts->part[parts->n < MOST_PARTS ? parts->n++ : MOST_PARTS - 1];
    *p = (struct oct_advise_part){.kind = kind, .is_used = is_used, .hz = hz};
    snprintf(p->name, sizeof(p->name), "%s", name);
}

static enum oct_err measure_ways_in(const struct oct_config *config, struct parts *parts,
                                    struct oct_error *err)
{
    char shm[64], ipc[64];
    snprintf(shm, sizeof(shm), "shm://bench-%d", (int)getpid());
    snprintf(ipc, sizeof(ipc), "ipc:///tmp/octctl-bench-%d", (int)getpid());
    const struct {
        const char *scheme, *endpoint;
        enum oct_wall kind;
    } ways[] = {{"shm://", shm, OCT_WALL_SHM},
                {"ipc://", ipc, OCT_WALL_TRANSPORT},
                {"tcp://", "tcp://127.0.0.1:*", OCT_WALL_TRANSPORT}};
    enum oct_err e = OCT_OK;
    for (unsigned k = 0; k < sizeof(ways) / sizeof(ways[0]) && !e; k++) {
        char name[48];
        double hz = 0;
        e = oct_bench_ingest_rate(config, ways[k].endpoint, PART_S, &hz, err);
        snprintf(name, sizeof(name), "lines in by %.3s", ways[k].scheme);
        add_part(parts, ways[k].kind,
                 strncmp(config->ingest.endpoint, ways[k].scheme, strlen(ways[k].scheme)) == 0, hz,
                 name);
    }
    unlink(ipc + strlen("ipc://"));
    return e;
}

/* One core copies lines as they come, from one memory larger than the caches into another. */
static enum oct_err measure_memory(const struct oct_config *config, const struct oct_geometry *g,
                                   struct parts *parts, struct oct_error *err)
{
    const size_t bytes = (size_t)64 << 20;
    char *from = malloc(bytes), *to = malloc(bytes);
    if (!from || !to) {
        free(from);
        free(to);
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a copy");
    }
    memset(from, 1, bytes);
    memset(to, 2, bytes);
    const uint64_t begin = oct_clock_ns();
    double copied = 0, took_s = 0;
    for (; took_s < PART_S / 2; took_s = (double)(oct_clock_ns() - begin) * 1e-9) {
        memcpy(to, from, bytes);
        from[(size_t)copied % bytes] = to[0]; /* each copy is of something else */
        copied += (double)bytes;
    }
    free(from);
    free(to);
    add_part(parts, OCT_WALL_MEMORY, strncmp(config->ingest.endpoint, "shm://", 6) != 0,
             copied / took_s / (double)oct_geometry_spectra_bytes(g) * g->n_lines,
             "one copy by one core");
    return OCT_OK;
}

/* *has_gpu: one answers. A backend that is not configured may fail. */
static enum oct_err measure_engines(const struct oct_config *config, struct parts *parts,
                                    bool *has_gpu, struct oct_error *err)
{
    static const char *const names[] = {"cpu", "cuda"};
    const char *wanted = oct_config_backend_names[config->pipeline.backend];
    double hz[2] = {0}, us;
    enum oct_err e = OCT_OK;
    for (int k = 0; k < 2; k++) {
        struct oct_config c = *config;
        struct oct_error why;
        oct_config_set(&c, "pipeline.backend", names[k], "bench --advise", NULL);
        if (oct_bench_engine(&c, 0, 0, PART_S, &hz[k], &us, &why) && strcmp(wanted, names[k]) == 0)
            e = oct_fail(err, why.code, "%s", why.text);
    }
    *has_gpu = hz[1] > 0;
    const bool by_gpu = strcmp(wanted, "cpu") != 0 && *has_gpu;
    add_part(parts, OCT_WALL_CPU, !by_gpu, hz[0], "reconstruction, CPU");
    if (*has_gpu)
        add_part(parts, OCT_WALL_GPU, by_gpu, hz[1], "reconstruction, GPU and its bus");
    return e;
}

/* As the daemon's forecast measures it. */
static void measure_disk(const struct oct_config *config, const struct oct_geometry *g,
                         struct parts *parts)
{
    const struct oct_record_settings settings = {
        .spectra = config->record.spectra != OCT_RECORD_NO_SPECTRA,
        .as_sent = config->record.spectra == OCT_RECORD_SPECTRA_AS_SENT,
        .bscans = config->record.bscans,
    };
    const double bscan_bytes = oct_record_bscan_bytes(&settings, g, 0);
    struct oct_forecast_disk disk = {0};
    struct oct_error why;
    if (oct_forecast_disk(config->record.directory, 4 * OCT_FORECAST_DISK_US, &disk, &why))
        fprintf(stderr, "octctl bench: record.directory: %s\n", why.text);
    add_part(parts, OCT_WALL_DISK, bscan_bytes > 0,
             bscan_bytes > 0 ? disk.bytes_per_s / bscan_bytes * g->n_lines : 0, "disk");
}

/* Pictures as large as these through ZeroMQ to one viewer of this machine, taken as they come. */
static enum oct_err measure_viewer(const struct oct_geometry *g, struct parts *parts,
                                   struct oct_error *err)
{
    const size_t bytes = oct_geometry_image_bytes(g);
    char endpoint[64];
    size_t endpoint_bytes = sizeof(endpoint);
    int none = 0;
    void *context = zmq_ctx_new(), *out = zmq_socket(context, ZMQ_PUSH),
         *in = zmq_socket(context, ZMQ_PULL);
    char *picture = calloc(bytes, 1);
    bool ok = picture && zmq_setsockopt(out, ZMQ_LINGER, &none, sizeof(none)) == 0 &&
              zmq_bind(in, "tcp://127.0.0.1:*") == 0 &&
              zmq_getsockopt(in, ZMQ_LAST_ENDPOINT, endpoint, &endpoint_bytes) == 0 &&
              zmq_connect(out, endpoint) == 0;
    const uint64_t begin = oct_clock_ns();
    uint64_t n = 0, took_ns = 0;
    enum { AHEAD = 8 };
    for (int k = 0; k < AHEAD && ok; k++)
        ok = zmq_send(out, picture, bytes, 0) >= 0;
    for (; ok && took_ns < PART_S * 1e9; took_ns = oct_clock_ns() - begin, n++) {
        zmq_msg_t message;
        zmq_msg_init(&message);
        ok = zmq_msg_recv(&message, in, 0) >= 0 && zmq_send(out, picture, bytes, 0) >= 0;
        zmq_msg_close(&message);
    }
    free(picture);
    zmq_close(out);
    zmq_close(in);
    zmq_ctx_term(context);
    if (!ok)
        return oct_fail(err, OCT_E_IO, "pictures do not go from here to here: %s",
                        zmq_strerror(zmq_errno()));
    add_part(parts, OCT_WALL_VIEWER, true, (double)n / ((double)took_ns * 1e-9) * g->n_lines,
             "pictures to one viewer, tcp");
    return OCT_OK;
}

/* ---- the report ---- */

static void report_text(const struct parts *parts, const struct oct_advise_facts *facts, int wall,
                        const char *what)
{
    printf("%-34s %16s %24s\n", "part", "A-lines/s", "share of the camera's");
    for (unsigned i = 0; i < parts->n; i++) {
        const struct oct_advise_part *p = &parts->part[i];
        if (p->hz > 0)
            printf("%-34s %16.0f %23.1f%s%s\n", p->name, p->hz, p->hz / facts->line_rate_hz,
                   p->is_used ? "" : "  not used", (int)i == wall ? "  <- the wall" : "");
        else
            printf("%-34s %16s\n", p->name, "not measured");
        if (p->kind == OCT_WALL_VIEWER && p->hz > 0 && p->hz < facts->line_rate_hz)
            printf("  a viewer gets %.0f %% of the pictures; nothing else is lost\n",
                   100 * p->hz / facts->line_rate_hz);
    }
    if (wall < 0)
        return;
    const double share = facts->line_rate_hz / parts->part[wall].hz;
    printf("\nscan.line_rate_hz is %.0f: %s, which %s.\n", facts->line_rate_hz,
           parts->part[wall].name,
           share > 1              ? "is the wall, does not follow"
           : share > ENOUGH_SHARE ? "is the wall, has little to spare"
                                  : "would be the wall, follows");
    printf("To change first%s: %s.\n", share > ENOUGH_SHARE ? "" : ", for more", what);
}

static void report_json(const struct parts *parts, const struct oct_advise_facts *facts, int wall,
                        const char *what, cJSON *report)
{
    cJSON *array = cJSON_AddArrayToObject(report, "advise");
    for (unsigned i = 0; i < parts->n; i++) {
        const struct oct_advise_part *p = &parts->part[i];
        cJSON *o = cJSON_CreateObject();
        cJSON_AddStringToObject(o, "part", p->name);
        cJSON_AddNumberToObject(o, "alines_per_s", p->hz);
        cJSON_AddNumberToObject(o, "of_line_rate", p->hz / facts->line_rate_hz);
        cJSON_AddBoolToObject(o, "used", p->is_used);
        cJSON_AddBoolToObject(o, "wall", (int)i == wall);
        cJSON_AddItemToArray(array, o);
    }
    cJSON_AddNumberToObject(report, "line_rate_hz", facts->line_rate_hz);
    cJSON_AddStringToObject(report, "change_first", what);
}

static void find_facts(const struct oct_config *config, const struct oct_geometry *g,
                       struct oct_advise_facts *facts)
{
    const unsigned n_cores = oct_bench_n_cores();
    *facts = (struct oct_advise_facts){
        .line_rate_hz = config->scan.line_rate_hz,
        .bits = config->camera.bits,
        .is_f32 = g->sample_type == OCT_SAMPLE_F32,
        .few_threads = config->pipeline.threads > 0 && config->pipeline.threads < n_cores,
        .all_depths = g->depth >= g->upsampled / 4,
        .records_as_sent = config->record.spectra == OCT_RECORD_SPECTRA_AS_SENT ||
                           config->record.spectra == OCT_RECORD_NO_SPECTRA,
        .records_bscans = config->record.bscans && config->record.spectra != OCT_RECORD_NO_SPECTRA,
    };
}

enum oct_err oct_bench_advise(const struct oct_config *config, bool json, cJSON *report,
                              struct oct_error *err)
{
    struct parts parts = {.n = 0};
    struct oct_advise_facts facts;
    struct oct_geometry g;
    char what[200] = "";
    enum oct_err e = oct_config_geometry(config, &g, err);
    if (e)
        return e;
    find_facts(config, &g, &facts);
    e = measure_ways_in(config, &parts, err);
    e = e ? e : measure_memory(config, &g, &parts, err);
    e = e ? e : measure_engines(config, &parts, &facts.has_gpu, err);
    if (!e)
        measure_disk(config, &g, &parts);
    e = e ? e : measure_viewer(&g, &parts, err);
    if (e)
        return e;
    const int wall = oct_advise_wall(parts.part, parts.n);
    if (wall >= 0)
        oct_advise_text(parts.part[wall].kind, &facts, what, sizeof(what));
    if (json)
        report_json(&parts, &facts, wall, what, report);
    else
        report_text(&parts, &facts, wall, what);
    return OCT_OK;
}
