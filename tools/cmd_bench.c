/* octctl bench: what this machine does. Every figure stands beside a limit taken in the same run,
 * and the output is checked before anything is timed. */
#include "config/apply.h"
#include "kernels/fft.h"
#include "pipeline/clock.h"
#include "pipeline/engine.h"
#include "tools/bench_cuda.h"
#include "tools/bench_part.h"
#include "tools/bench_scene.h"
#include "tools/commands.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#define REPEATS 5 /* the best counts: noise on a machine only ever adds */

struct row {
    uint32_t samples, lines, depth;
    unsigned threads;
    double error;       /* grey levels off the double-precision sums */
    double lines_per_s; /* the engine */
    double fft_per_s;   /* the bare transforms of the chain, by FFTW, same threads */
    double latency_us;  /* one B-scan alone, submit to collect: median */
};

/* ---- the engine ---- */

struct runner {
    struct oct_bench_scene *scene;
    const struct oct_engine_ops *ops;
    struct oct_engine *engine;
};

static void submit_one(struct runner *r, uint64_t number, const struct oct_display *display)
{
    unsigned f = (unsigned)(number % OCT_BENCH_FRAMES);
    const struct oct_engine_job job = {&r->scene->in[f], &r->scene->out[f], *display};
    r->ops->submit(r->engine, &job, 1);
}

/* Seconds for n B-scans with the engine kept full. */
static double run_full(struct runner *r, uint64_t n)
{
    unsigned depth = r->ops->depth(r->engine);
    if (depth > OCT_BENCH_FRAMES)
        depth = OCT_BENCH_FRAMES;
    uint64_t begin = oct_clock_ns(), submitted = 0;
    for (uint64_t collected = 0; collected < n;) {
        struct oct_image_frame *done;
        for (; submitted < n && submitted - collected < depth; submitted++)
            submit_one(r, submitted, &r->scene->display);
        if (r->ops->collect(r->engine, 1000000, &done) == OCT_OK)
            collected++;
    }
    return (double)(oct_clock_ns() - begin) * 1e-9;
}

static int by_value(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static double single_latency_us(struct runner *r)
{
    enum { N = 101 };
    double us[N];
    for (unsigned i = 0; i < N; i++) {
        struct oct_image_frame *done;
        uint64_t begin = oct_clock_ns();
        submit_one(r, i, &r->scene->display);
        while (r->ops->collect(r->engine, 1000000, &done))
            ;
        us[i] = (double)(oct_clock_ns() - begin) * 1e-3;
    }
    qsort(us, N, sizeof(us[0]), by_value);
    return us[N / 2];
}

/* A picture over the usual 60 dB, compared with double precision. */
static double verify(struct runner *r)
{
    struct oct_display display = {.log = true, .range = OCT_RANGE_AUTO};
    struct oct_image_frame *done;
    submit_one(r, 0, &display);
    while (r->ops->collect(r->engine, 1000000, &done))
        ;
    display.range = OCT_RANGE_MANUAL;
    display.hi = done->hi;
    display.lo = done->hi - 60;
    submit_one(r, 0, &display);
    while (r->ops->collect(r->engine, 1000000, &done))
        ;
    return oct_bench_scene_error(r->scene, 0);
}

static enum oct_err measure_engine(struct row *row, struct oct_bench_scene *scene,
                                   const char *backend, const struct oct_engine_options *options,
                                   double seconds, char *why, size_t why_bytes,
                                   struct oct_error *err)
{
    struct runner r = {.scene = scene};
    enum oct_err e =
        oct_engine_select(backend, scene->plan, options, &r.ops, &r.engine, why, why_bytes, err);
    if (e)
        return e;
    row->error = verify(&r);
    if (row->error > 1) {
        r.ops->destroy(r.engine);
        return oct_fail(err, OCT_E_BACKEND,
                        "the %s engine is off by %.1f grey levels: not timed; run the tests",
                        r.ops->name, row->error);
    }
    uint64_t n = 8;
    double took = run_full(&r, n);
    n = (uint64_t)(8 * seconds / REPEATS / took) + 8;
    double best = 1e30;
    for (int i = 0; i < REPEATS; i++) {
        took = run_full(&r, n);
        best = took < best ? took : best;
    }
    row->lines_per_s = (double)n * scene->plan->geometry.n_lines / best;
    row->latency_us = single_latency_us(&r);
    r.ops->destroy(r.engine);
    return OCT_OK;
}

/* ---- the limit: bare transforms by FFTW, measured plans, whoever does the engine's ---- */

struct fft_worker {
    const struct oct_fft *fft;
    uint32_t padded;
    uint64_t n_lines;
    pthread_t thread;
};

static void *run_transforms(void *argument)
{
    const struct fft_worker *w = argument;
    const struct oct_fft *fft = w->fft;
    size_t bytes = 2 * (size_t)w->padded * sizeof(fftwf_complex);
    fftwf_complex *a = aligned_alloc(64, bytes), *b = aligned_alloc(64, bytes);

    if (a && b) {
        memset(a, 0, bytes);
        for (uint64_t i = 0; i < w->n_lines; i += 2) { /* lines in pairs, as the chain does */
            fftwf_execute_dft(fft->forward_pair, a, b);
            fftwf_execute_dft(fft->inverse_pair, b, a);
            fftwf_execute_dft(fft->forward, a, b);
            fftwf_execute_dft(fft->forward, a, b);
        }
    }
    free(a);
    free(b);
    return NULL;
}

static double time_transforms(struct fft_worker *workers, unsigned n_threads, uint64_t n_lines)
{
    uint64_t begin = oct_clock_ns();
    unsigned started = 0;
    for (; started < n_threads; started++) {
        workers[started].n_lines = n_lines / n_threads;
        if (pthread_create(&workers[started].thread, NULL, run_transforms, &workers[started]))
            break;
    }
    for (unsigned t = 0; t < started; t++)
        pthread_join(workers[t].thread, NULL);
    return (double)(oct_clock_ns() - begin) * 1e-9;
}

static enum oct_err measure_limit(struct row *row, const struct oct_plan *plan,
                                  const struct oct_engine_options *options, double seconds,
                                  struct oct_error *err)
{
    struct fft_worker workers[64];
    struct oct_fft fft;
    enum oct_err e = oct_fft_init(&fft, plan->geometry.padded, options->wisdom_dir, err);
    if (e)
        return e;
    unsigned n_threads = row->threads < 64 ? row->threads : 64;
    for (unsigned t = 0; t < n_threads; t++)
        workers[t] = (struct fft_worker){.fft = &fft, .padded = plan->geometry.padded};
    uint64_t n = 2000;
    double took = time_transforms(workers, n_threads, n), best = 1e30;
    n = (uint64_t)((double)n * seconds / REPEATS / took) + 100;
    for (int i = 0; i < REPEATS; i++) {
        took = time_transforms(workers, n_threads, n);
        best = took < best ? took : best;
    }
    row->fft_per_s = (double)(n / n_threads * n_threads) / best;
    oct_fft_finish(&fft);
    return OCT_OK;
}

/* ---- the report ---- */

static void print_row(const struct row *row)
{
    printf("%7u %6u %6u %8u %12.0f %14.0f %8.2f %11.0f %7.2f\n", row->samples, row->lines,
           row->depth, row->threads, row->lines_per_s, row->fft_per_s,
           row->fft_per_s / row->lines_per_s, row->latency_us, row->error);
}

static void add_row(cJSON *rows, const struct row *row)
{
    cJSON *object = cJSON_CreateObject();
    cJSON_AddNumberToObject(object, "samples", row->samples);
    cJSON_AddNumberToObject(object, "lines", row->lines);
    cJSON_AddNumberToObject(object, "depth", row->depth);
    cJSON_AddNumberToObject(object, "threads", row->threads);
    cJSON_AddNumberToObject(object, "alines_per_s", row->lines_per_s);
    cJSON_AddNumberToObject(object, "bare_fft_alines_per_s", row->fft_per_s);
    cJSON_AddNumberToObject(object, "times_bare_fft", row->fft_per_s / row->lines_per_s);
    cJSON_AddNumberToObject(object, "bscan_latency_us", row->latency_us);
    cJSON_AddNumberToObject(object, "grey_levels_off", row->error);
    cJSON_AddItemToArray(rows, object);
}

struct shape {
    uint32_t samples, depth;
    bool one_thread;
};

/* The thesis geometry first; then other cameras, a shallow crop, and one core alone. */
static const struct shape shapes[] = {
    {832, 1024, false},  {832, 1024, true},   {832, 256, false},
    {1024, 1024, false}, {2048, 1024, false}, {4096, 2048, false},
};

static enum oct_err measure(const struct oct_config *config, const struct shape *shape,
                            double seconds, struct row *row, char *why, size_t why_bytes,
                            struct oct_error *err)
{
    struct oct_config c = *config;
    struct oct_engine_options options;
    struct oct_bench_scene scene;
    char wisdom_dir[OCT_CONFIG_STRING_BYTES];

    if (shape->samples && !oct_config_is_set(config, "camera.samples"))
        c.camera.samples = shape->samples;
    enum oct_err e = oct_bench_scene_init(&scene, &c, shape->depth, err);
    if (e)
        return e;
    oct_config_engine_options(&c, &options, wisdom_dir, sizeof(wisdom_dir));
    if (shape->one_thread)
        options.n_threads = 1;
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    *row = (struct row){
        .samples = scene.plan->geometry.n_samples,
        .lines = scene.plan->geometry.n_lines,
        .depth = scene.plan->geometry.depth,
        .threads = options.n_threads ? options.n_threads : (unsigned)(cores > 0 ? cores : 1),
    };
    e = measure_engine(row, &scene, oct_config_backend_names[c.pipeline.backend], &options, seconds,
                       why, why_bytes, err);
    if (e == OCT_OK)
        e = measure_limit(row, scene.plan, &options, seconds, err);
    oct_bench_scene_finish(&scene);
    return e;
}

static enum oct_err bench(const struct oct_config *config, double seconds, bool json,
                          struct oct_error *err)
{
    char why[256];
    /* A camera given by hand is the only one that is measured. */
    size_t n = oct_config_is_set(config, "camera.samples") ? 2 : sizeof(shapes) / sizeof(shapes[0]);
    cJSON *report = cJSON_CreateObject();
    cJSON *rows = cJSON_AddArrayToObject(report, "engine");
    enum oct_err e = OCT_OK;

    for (size_t i = 0; i < n && !e; i++) {
        struct row row;
        e = measure(config, &shapes[i], seconds, &row, why, sizeof(why), err);
        if (e)
            break;
        if (i == 0 && !json)
            printf("%s\nu16 in, %s out; best of %d\n%7s %6s %6s %8s %12s %14s %8s %11s %7s\n", why,
                   config->output.sample == OCT_SAMPLE_F32 ? "f32" : "u8", REPEATS, "samples",
                   "lines", "depth", "threads", "A-lines/s", "bare FFTs/s", "x FFTs", "1 B-scan us",
                   "off by");
        if (!json)
            print_row(&row);
        fflush(stdout);
        add_row(rows, &row);
    }
    if (!e && json) {
        cJSON_AddStringToObject(report, "engine_is", why);
        cJSON_AddStringToObject(report, "version", OCT_VERSION);
        char *text = cJSON_Print(report);
        if (text)
            puts(text);
        cJSON_free(text);
    }
    cJSON_Delete(report);
    return e;
}

/* ---- a GPU beside its bus ---- */

static void add_cuda_row(cJSON *rows, const struct oct_bench_cuda_row *row)
{
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "kernels", row->kernels);
    cJSON_AddStringToObject(object, "range", row->range);
    cJSON_AddNumberToObject(object, "samples", row->samples);
    cJSON_AddNumberToObject(object, "lines", row->lines);
    cJSON_AddNumberToObject(object, "depth", row->depth);
    cJSON_AddNumberToObject(object, "batch", row->batch);
    cJSON_AddNumberToObject(object, "streams", row->streams);
    cJSON_AddNumberToObject(object, "alines_per_s", row->lines_per_s);
    cJSON_AddNumberToObject(object, "bare_copy_alines_per_s", row->copy_lines_per_s);
    cJSON_AddNumberToObject(object, "device_copy_bytes_per_s", row->device_bytes_per_s);
    cJSON_AddNumberToObject(object, "kernels_alone_alines_per_s", row->kernel_lines_per_s);
    cJSON_AddNumberToObject(object, "batch_upload_us", row->stage_us[0]);
    cJSON_AddNumberToObject(object, "batch_kernels_us", row->stage_us[1]);
    cJSON_AddNumberToObject(object, "batch_download_us", row->stage_us[2]);
    cJSON_AddNumberToObject(object, "bscan_latency_us", row->latency_us);
    cJSON_AddNumberToObject(object, "grey_levels_off", row->error);
    cJSON_AddItemToArray(rows, object);
}

static enum oct_err measure_cuda(const struct oct_config *config, uint32_t depth,
                                 const char *kernels, enum oct_range range, double seconds,
                                 struct oct_bench_cuda_row *row, struct oct_error *err)
{
    struct oct_engine_options options;
    struct oct_bench_scene scene;
    char wisdom_dir[OCT_CONFIG_STRING_BYTES];
    struct oct_config c = *config;

    c.output.sample = OCT_SAMPLE_U8;
    enum oct_err e = oct_bench_scene_init(&scene, &c, depth, err);
    if (e)
        return e;
    oct_config_engine_options(&c, &options, wisdom_dir, sizeof(wisdom_dir));
    options.cuda = kernels;
    e = oct_bench_cuda(&scene, &options, range, seconds, row, err);
    oct_bench_scene_finish(&scene);
    return e;
}

/* Half and all of the thesis's depth by the fused kernels, and their readable twin. */
static enum oct_err bench_cuda(const struct oct_config *config, double seconds, bool json,
                               struct oct_error *err)
{
    static const struct {
        const char *kernels;
        uint32_t depth;
        enum oct_range range;
    } gpu_shapes[] = {{"auto", 1024, OCT_RANGE_MANUAL},
                      {"auto", 2048, OCT_RANGE_MANUAL},
                      {"auto", 1024, OCT_RANGE_PERCENTILE},
                      {"plain", 1024, OCT_RANGE_MANUAL}};
    cJSON *report = cJSON_CreateObject();
    cJSON *rows = cJSON_AddArrayToObject(report, "cuda");
    enum oct_err e = OCT_OK;

    for (size_t i = 0; i < sizeof(gpu_shapes) / sizeof(gpu_shapes[0]) && !e; i++) {
        struct oct_bench_cuda_row row;
        e = measure_cuda(config, gpu_shapes[i].depth, gpu_shapes[i].kernels, gpu_shapes[i].range,
                         seconds, &row, err);
        if (e)
            break;
        if (i == 0 && !json)
            oct_bench_cuda_print_head();
        if (!json)
            oct_bench_cuda_print(&row);
        add_cuda_row(rows, &row);
    }
    if (!e && json) {
        cJSON_AddStringToObject(report, "version", OCT_VERSION);
        char *text = cJSON_Print(report);
        if (text)
            puts(text);
        cJSON_free(text);
    }
    cJSON_Delete(report);
    return e;
}

enum oct_err oct_bench_engine(const struct oct_config *config, uint32_t lines, unsigned n_threads,
                              double seconds, double *lines_per_s, double *bscan_us,
                              struct oct_error *err)
{
    struct oct_config c = *config;
    const struct shape shape = {config->camera.samples, 0, false};
    struct row row;
    char why[256];
    if (lines)
        c.scan.lines = lines;
    if (n_threads)
        c.pipeline.threads = n_threads;
    enum oct_err e = measure(&c, &shape, seconds, &row, why, sizeof(why), err);
    *lines_per_s = e ? 0 : row.lines_per_s;
    *bscan_us = e ? 0 : row.latency_us;
    return e;
}

/* ---- the command ---- */

static const struct {
    const char *name;
    oct_bench_part *run;
} parts[] = {
    {"ingest", oct_bench_ingest},   {"shm", oct_bench_shm},     {"recorder", oct_bench_recorder},
    {"latency", oct_bench_latency}, {"start", oct_bench_start}, {"growth", oct_bench_growth},
    {"whole", oct_bench_whole},
};
enum { N_PARTS = sizeof(parts) / sizeof(parts[0]) };

static void add_part_row(cJSON *array, const struct oct_bench_row *row)
{
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "part", row->part);
    cJSON_AddStringToObject(object, "what", row->what);
    cJSON_AddStringToObject(object, "unit", row->unit);
    cJSON_AddNumberToObject(object, "value", row->value);
    cJSON_AddStringToObject(object, "limit_is", row->limit_is);
    cJSON_AddNumberToObject(object, "limit", row->limit);
    cJSON_AddNumberToObject(object, "ratio", row->limit > 0 ? row->value / row->limit : 0);
    cJSON_AddNumberToObject(object, "goal", row->goal);
    cJSON_AddBoolToObject(object, "less_is_better", row->less_is_better);
    cJSON_AddStringToObject(object, "note", row->note);
    cJSON_AddItemToArray(array, object);
}

/* A part that fails is named and does not keep the others from being measured. */
static enum oct_err bench_parts(const struct oct_config *config,
                                const struct oct_bench_options *options, const bool *wanted,
                                bool json, struct oct_error *err)
{
    static struct oct_bench_rows rows; /* large */
    enum oct_err worst = OCT_OK;
    cJSON *report = cJSON_CreateObject(), *array = cJSON_AddArrayToObject(report, "parts");
    rows.n = 0;
    if (!json)
        oct_bench_print_head();
    for (unsigned p = 0; p < N_PARTS; p++) {
        unsigned before = rows.n;
        struct oct_error why;
        if (!wanted[p])
            continue;
        enum oct_err e = parts[p].run(config, options, &rows, &why);
        if (e) {
            rows.n = before;
            worst = oct_fail(err, e, "%s: %s", parts[p].name, why.text);
            fprintf(stderr, "octctl bench: %s\n", err->text);
        }
        for (unsigned i = before; i < rows.n; i++) {
            add_part_row(array, &rows.row[i]);
            if (!json)
                oct_bench_print_row(&rows.row[i]);
        }
    }
    cJSON_AddStringToObject(report, "version", OCT_VERSION);
    char *text = json ? cJSON_Print(report) : NULL;
    if (text)
        puts(text);
    cJSON_free(text);
    cJSON_Delete(report);
    return worst;
}

struct request {
    struct oct_bench_options options;
    bool json, engine, any_part, part[N_PARTS];
};

static bool read_part(struct request *r, const char *name)
{
    bool all = strcmp(name, "all") == 0, known = all;
    if (all || strcmp(name, "engine") == 0)
        known = r->engine = true;
    for (unsigned p = 0; p < N_PARTS; p++)
        if (all || strcmp(name, parts[p].name) == 0)
            known = r->part[p] = r->any_part = true;
    return known;
}

static int read_request(struct request *r, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *value;
        double gb;
        if (oct_option_flag(argv[i], "--json")) {
            r->json = true;
        } else if (oct_option_value(argc, argv, &i, "--seconds", &value)) {
            double *seconds = &r->options.seconds;
            if (!oct_option_double(value, seconds) || *seconds < 0.1 || *seconds > 600)
                return oct_command_misuse(argv[0], "--seconds takes a number from 0.1 to 600");
        } else if (oct_option_value(argc, argv, &i, "--size-gb", &value)) {
            if (!oct_option_double(value, &gb) || gb < 0.1 || gb > 1000)
                return oct_command_misuse(argv[0], "--size-gb takes a number from 0.1 to 1000");
            r->options.recorder_bytes = gb * 1e9;
        } else if (argv[i][0] == '-' || !read_part(r, argv[i])) {
            return oct_command_misuse(argv[0], "'%s' is not understood", argv[i]);
        }
    }
    r->engine = r->engine || !r->any_part;
    return 0;
}

int oct_cmd_bench(struct oct_config *config, int argc, char **argv)
{
    struct oct_error err;
    struct request r = {
        .options = {.seconds = 2, .recorder_bytes = 2e9, .directory = config->record.directory}};
    int status = read_request(&r, argc, argv);
    if (status)
        return status;
    double seconds = r.options.seconds;
    bool cuda = strcmp(oct_config_backend_names[config->pipeline.backend], "cuda") == 0;
    enum oct_err e = OCT_OK;
    if (r.engine)
        e = cuda ? bench_cuda(config, seconds, r.json, &err) : bench(config, seconds, r.json, &err);
    if (e || !r.any_part)
        return e ? oct_command_fail(argv[0], &err) : 0;
    return oct_exit_status(bench_parts(config, &r.options, r.part, r.json, &err));
}
