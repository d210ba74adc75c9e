#include "tools/genicam/genicam.h"

#include <arv.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define QUEUE_BYTES (UINT64_C(256) << 20)
#define LEAST_BUFFERS 8u
#define MOST_BUFFERS 256u

struct oct_genicam {
    ArvCamera *camera;
    ArvStream *stream;
    struct oct_genicam_form form;
    atomic_bool is_lost; /* set by a thread of aravis */
    uint64_t n_broken;
};

/* Whether the camera does not answer, or answers somebody else. */
static bool is_loss(const GError *fault)
{
    return g_error_matches(fault, ARV_DEVICE_ERROR, ARV_DEVICE_ERROR_TIMEOUT) ||
           g_error_matches(fault, ARV_DEVICE_ERROR, ARV_DEVICE_ERROR_NOT_CONNECTED) ||
           g_error_matches(fault, ARV_DEVICE_ERROR, ARV_DEVICE_ERROR_NOT_CONTROLLER) ||
           g_error_matches(fault, ARV_DEVICE_ERROR, ARV_DEVICE_ERROR_TRANSFER_ERROR);
}

/* Takes the fault, which is freed. OCT_E_CLOSED instead of `code`: the camera is gone. */
static enum oct_err failed(enum oct_err code, GError *fault, const char *what, const char *which,
                           struct oct_error *err)
{
    code = is_loss(fault) ? OCT_E_CLOSED : code;
    const enum oct_err e = oct_fail(err, code, "%s%s%s: %s", what, *which ? " " : "", which,
                                    fault ? fault->message : "the camera does not say why");
    g_clear_error(&fault);
    return e;
}

void oct_genicam_version(char *text, size_t text_bytes)
{
    snprintf(text, text_bytes, "%u.%u.%u", arv_get_major_version(), arv_get_minor_version(),
             arv_get_micro_version());
}

unsigned oct_genicam_list(FILE *out, bool with_fake)
{
    if (with_fake)
        arv_enable_interface("Fake");
    arv_update_device_list();
    const unsigned n = arv_get_n_devices();
    for (unsigned i = 0; i < n; i++)
        fprintf(out, "%s\t%s\t%s\t%s\t%s\t%s\n", arv_get_device_id(i), arv_get_device_protocol(i),
                arv_get_device_address(i), arv_get_device_vendor(i), arv_get_device_model(i),
                arv_get_device_serial_nbr(i));
    return n;
}

/* ---- opening ---- */

static void on_lost(ArvDevice *device, void *data)
{
    struct oct_genicam *c = data;
    (void)device;
    atomic_store(&c->is_lost, true);
}

static void name_camera(struct oct_genicam *c, const char *id)
{
    const char *vendor = arv_camera_get_vendor_name(c->camera, NULL);
    const char *model = arv_camera_get_model_name(c->camera, NULL);
    if (id)
        snprintf(c->form.id, sizeof(c->form.id), "%s", id);
    else
        snprintf(c->form.id, sizeof(c->form.id), "%s %s", vendor ? vendor : "camera",
                 model ? model : "");
}

/* Whoever controlled the camera before may have left it in an acquisition, which one whose
 * heartbeat
 * was lost goes on with as soon as it is controlled again, to where it sent before: it is ended
 * before the camera is set up. aravis takes a camera that it does not control for open. */
static enum oct_err take_over(struct oct_genicam *c, struct oct_error *err)
{
    ArvDevice *device = arv_camera_get_device(c->camera);
    if (ARV_IS_GV_DEVICE(device) && !arv_gv_device_is_controller(ARV_GV_DEVICE(device)))
        return oct_fail(err, OCT_E_IO, "%s: another program controls this camera; end that first",
                        c->form.id);
    arv_camera_stop_acquisition(c->camera, NULL); /* one at rest may refuse */
    return OCT_OK;
}

enum oct_err oct_genicam_open(struct oct_genicam **camera, const char *id, struct oct_error *err)
{
    GError *fault = NULL;
    *camera = NULL;
    struct oct_genicam *c = calloc(1, sizeof(*c));
    if (!c)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a camera");
    if (id && strncmp(id, "Fake_", 5) == 0)
        arv_enable_interface("Fake");
    c->camera = arv_camera_new(id, &fault);
    if (!c->camera) {
        free(c);
        if (!id) {
            g_clear_error(&fault);
            return oct_fail(err, OCT_E_IO, "no GenICam camera answers; --list shows those that do");
        }
        return failed(OCT_E_IO, fault, "camera", id, err);
    }
    arv_camera_set_range_check_policy(c->camera, ARV_RANGE_CHECK_POLICY_ENABLE);
    arv_camera_set_access_check_policy(c->camera, ARV_ACCESS_CHECK_POLICY_ENABLE);
    g_signal_connect(arv_camera_get_device(c->camera), "control-lost", G_CALLBACK(on_lost), c);
    name_camera(c, id);
    *camera = c;
    return take_over(c, err);
}

enum oct_err oct_genicam_set(struct oct_genicam *c, const char *text, struct oct_error *err)
{
    GError *fault = NULL;
    char feature[128];
    const char *equals = strchr(text, '=');
    const size_t n = equals ? (size_t)(equals - text) : strlen(text);
    if (n == 0 || n >= sizeof(feature))
        return oct_fail(err, OCT_E_CONFIG, "--set %s: wants FEATURE=VALUE", text);
    memcpy(feature, text, n);
    feature[n] = '\0';
    ArvGcNode *node = arv_device_get_feature(arv_camera_get_device(c->camera), feature);
    if (!ARV_IS_GC_FEATURE_NODE(node))
        return oct_fail(err, OCT_E_CONFIG, "--set %s: the camera has no feature %s", text, feature);
    if (!equals && !ARV_IS_GC_COMMAND(node))
        return oct_fail(err, OCT_E_CONFIG, "--set %s: is no command; %s=VALUE", text, feature);
    if (equals)
        arv_gc_feature_node_set_value_from_string(ARV_GC_FEATURE_NODE(node), equals + 1, &fault);
    else
        arv_gc_command_execute(ARV_GC_COMMAND(node), &fault);
    return fault ? failed(OCT_E_CONFIG, fault, "--set", text, err) : OCT_OK;
}

/* ---- starting ---- */

static enum oct_err read_form(struct oct_genicam *c, struct oct_error *err)
{
    GError *fault = NULL;
    int x, y, width = 0, height = 0;
    arv_camera_get_region(c->camera, &x, &y, &width, &height, &fault);
    if (fault)
        return failed(OCT_E_IO, fault, c->form.id, "", err);
    const uint32_t pfnc = (uint32_t)arv_camera_get_pixel_format(c->camera, &fault);
    if (fault)
        return failed(OCT_E_IO, fault, c->form.id, "", err);
    c->form.format = oct_pixel_format_of(pfnc);
    if (c->form.format == OCT_PIXEL_NONE) {
        const char *name = arv_camera_get_pixel_format_as_string(c->camera, NULL);
        return oct_fail(err, OCT_E_CONFIG,
                        "%s: PixelFormat %s is not read; --set PixelFormat=Mono12 (Mono8, Mono10, "
                        "Mono12, Mono14, Mono16, Mono12p and Mono12Packed are)",
                        c->form.id, name ? name : "unknown");
    }
    if (width < 1 || height < 1 ||
        oct_pixel_bytes(c->form.format, (uint32_t)height, (uint32_t)width, 0) == 0)
        return oct_fail(err, OCT_E_CONFIG, "%s: frames of %d x %d", c->form.id, width, height);
    c->form.n_samples = (uint32_t)width;
    c->form.n_lines = (uint32_t)height;
    c->form.has_wide_ids = arv_camera_is_uv_device(c->camera);
    return OCT_OK;
}

static enum oct_err make_stream(struct oct_genicam *c, struct oct_error *err)
{
    GError *fault = NULL;
    const size_t payload = arv_camera_get_payload(c->camera, &fault);
    if (fault || payload == 0)
        return failed(OCT_E_IO, fault, c->form.id, "says no PayloadSize", err);
    c->stream = arv_camera_create_stream(c->camera, NULL, NULL, &fault);
    if (!c->stream)
        return failed(OCT_E_IO, fault, c->form.id, "has no stream", err);
    uint64_t n = QUEUE_BYTES / payload;
    n = n < LEAST_BUFFERS ? LEAST_BUFFERS : n > MOST_BUFFERS ? MOST_BUFFERS : n;
    for (uint64_t i = 0; i < n; i++)
        arv_stream_push_buffer(c->stream, arv_buffer_new_allocate(payload));
    return OCT_OK;
}

enum oct_err oct_genicam_prepare(struct oct_genicam *c, struct oct_genicam_form *form,
                                 struct oct_error *err)
{
    enum oct_err e = read_form(c, err);
    e = e ? e : make_stream(c, err);
    *form = c->form;
    return e;
}

enum oct_err oct_genicam_start(struct oct_genicam *c, struct oct_error *err)
{
    GError *fault = NULL;
    if (arv_camera_is_feature_available(c->camera, "AcquisitionMode", NULL))
        arv_camera_set_acquisition_mode(c->camera, ARV_ACQUISITION_MODE_CONTINUOUS, &fault);
    g_clear_error(&fault); /* there are cameras that know one mode alone */
    arv_camera_start_acquisition(c->camera, &fault);
    return fault ? failed(OCT_E_IO, fault, c->form.id, "does not start", err) : OCT_OK;
}

/* ---- frames ---- */

/* The bytes that a frame says it has lie in its buffer. */
static enum oct_err check_frame(const struct oct_genicam *c, ArvBuffer *buffer,
                                struct oct_genicam_frame *frame, struct oct_error *err)
{
    size_t n_bytes = 0;
    int padding = 0, below = 0;
    const int width = arv_buffer_get_image_width(buffer);
    const int height = arv_buffer_get_image_height(buffer);
    const uint32_t pfnc = (uint32_t)arv_buffer_get_image_pixel_format(buffer);
    arv_buffer_get_image_padding(buffer, &padding, &below);
    frame->bytes = arv_buffer_get_image_data(buffer, &n_bytes);
    if (width != (int)c->form.n_samples || height < 1 || height > (int)c->form.n_lines ||
        oct_pixel_format_of(pfnc) != c->form.format || padding < 0)
        return oct_fail(err, OCT_E_FORMAT,
                        "%s: sends frames of %d x %d, format 0x%08" PRIx32
                        ", but was started with %" PRIu32 " x %" PRIu32 " of %s",
                        c->form.id, width, height, pfnc, c->form.n_samples, c->form.n_lines,
                        oct_pixel_format_name(c->form.format));
    frame->n_lines = (uint32_t)height;
    frame->row_padding = (uint32_t)padding;
    const size_t needed =
        oct_pixel_bytes(c->form.format, frame->n_lines, c->form.n_samples, frame->row_padding);
    if (!frame->bytes || needed == 0 || n_bytes < needed)
        return oct_fail(err, OCT_E_FORMAT, "%s: a frame has %zu bytes, %zu are needed", c->form.id,
                        n_bytes, needed);
    return OCT_OK;
}

static bool is_image(ArvBuffer *buffer)
{
    const ArvBufferPayloadType type = arv_buffer_get_payload_type(buffer);
    return type == ARV_BUFFER_PAYLOAD_TYPE_IMAGE ||
           type == ARV_BUFFER_PAYLOAD_TYPE_EXTENDED_CHUNK_DATA ||
           type == ARV_BUFFER_PAYLOAD_TYPE_MULTIPART;
}

enum oct_err oct_genicam_next(struct oct_genicam *c, uint32_t timeout_ms,
                              struct oct_genicam_frame *frame, struct oct_error *err)
{
    ArvBuffer *buffer = arv_stream_timeout_pop_buffer(c->stream, UINT64_C(1000) * timeout_ms);
    if (!buffer && atomic_load(&c->is_lost))
        return oct_fail(err, OCT_E_CLOSED, "%s: the camera has gone away", c->form.id);
    if (!buffer)
        return OCT_E_AGAIN;
    if (arv_buffer_get_status(buffer) != ARV_BUFFER_STATUS_SUCCESS) {
        c->n_broken++; /* the next frame's id says that this one is missing */
        arv_stream_push_buffer(c->stream, buffer);
        return OCT_E_AGAIN;
    }
    *frame = (struct oct_genicam_frame){.id = arv_buffer_get_frame_id(buffer),
                                        .time_ns = arv_buffer_get_timestamp(buffer),
                                        .system_ns = arv_buffer_get_system_timestamp(buffer),
                                        .buffer = buffer};
    const enum oct_err e = is_image(buffer)
                               ? check_frame(c, buffer, frame, err)
                               : oct_fail(err, OCT_E_FORMAT, "%s: sends no images", c->form.id);
    if (e)
        oct_genicam_release(c, frame);
    return e;
}

void oct_genicam_release(struct oct_genicam *c, const struct oct_genicam_frame *frame)
{
    arv_stream_push_buffer(c->stream, ARV_BUFFER(frame->buffer));
}

void oct_genicam_counts(const struct oct_genicam *c, uint64_t *n_broken, uint64_t *n_no_room)
{
    guint64 n_done = 0, n_failed = 0, n_room = 0;
    if (c->stream)
        arv_stream_get_statistics(c->stream, &n_done, &n_failed, &n_room);
    *n_broken = c->n_broken;
    *n_no_room = n_room;
}

void oct_genicam_close(struct oct_genicam *c)
{
    if (!c)
        return;
    if (c->stream && !atomic_load(&c->is_lost))
        arv_camera_stop_acquisition(c->camera, NULL);
    g_signal_handlers_disconnect_by_data(arv_camera_get_device(c->camera), c);
    g_clear_object(&c->stream);
    g_clear_object(&c->camera);
    free(c);
}
