/* aravis' simulated GigE Vision camera at 127.0.0.1, with 12-bit formats, a pattern that names its
 * frame, and frames that are lost:
 *
 *     fake_gv_camera SERIAL XML [LOSE_EVERY [LOSE]]
 *
 * Pixel x of row y of frame f (its count since the start, lost ones too) is
 * (5 x + 3 y + 7 f) mod 4096; of Mono8 mod 256. Every LOSE_EVERY-th frame, LOSE ids are left out.
 * XML: where to write the description of the camera. Ends with status 77 when another GigE Vision
 * camera has 127.0.0.1 already; runs until a signal. */
#include <arv.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MONO_12P 0x010c0047u
#define MONO_12_PACKED 0x010c0006u
#define MONO_12 0x01100005u
#define MONO_8 0x01080001u

struct pattern {
    guint64 first_id, n_frames, n_left_out; /* left out so far */
    guint64 every, lose;
};

static unsigned value(unsigned x, unsigned y, guint64 frame)
{
    return (unsigned)((5 * x + 3 * y + 7 * frame) & 4095);
}

/* Two samples in three bytes, written from the standard's pictures: bits of the first sample from
 * the lowest on (12p), or high bytes first and the low nibbles between (12Packed). */
static void put_pair(guint8 *to, unsigned a, unsigned b, gboolean is_12p)
{
    to[0] = (guint8)(is_12p ? a & 255 : a >> 4);
    to[1] = (guint8)(is_12p ? a >> 8 | (b & 15) << 4 : (a & 15) | (b & 15) << 4);
    to[2] = (guint8)(b >> 4);
}

static void fill_pixels(guint8 *to, unsigned width, unsigned height, guint64 frame, guint32 format)
{
    const unsigned n = width * height; /* even */
    for (unsigned i = 0; i < n; i++) {
        const unsigned v = value(i % width, i / width, frame);
        if (format == MONO_8) {
            to[i] = (guint8)v;
        } else if (format == MONO_12) {
            to[2 * i] = (guint8)v;
            to[2 * i + 1] = (guint8)(v >> 8);
        } else if (i % 2 == 0 && i + 1 < n) {
            const unsigned w = value((i + 1) % width, (i + 1) / width, frame);
            put_pair(to + i / 2 * 3, v, w, format == MONO_12P);
        }
    }
}

/* Ids of GigE Vision: 1 to 65535, then 1 again. */
static void fill(ArvBuffer *buffer, void *data, guint32 exposure_us, guint32 gain,
                 ArvPixelFormat format)
{
    struct pattern *p = data;
    size_t n_bytes;
    (void)exposure_us;
    (void)gain;
    if (p->n_frames++ == 0)
        p->first_id = arv_buffer_get_frame_id(buffer);
    if (p->every && p->n_frames % p->every == 0)
        p->n_left_out += p->lose;
    const guint64 frame = p->n_frames - 1 + p->n_left_out;
    arv_buffer_set_frame_id(buffer, (p->first_id - 1 + frame) % 65535 + 1);
    void *pixels = (void *)(guintptr)arv_buffer_get_data(buffer, &n_bytes);
    fill_pixels(pixels, (unsigned)arv_buffer_get_image_width(buffer),
                (unsigned)arv_buffer_get_image_height(buffer), frame, (guint32)format);
}

static gboolean write_description(const char *path)
{
    static const char mark[] = "<DisplayName>Pixel format</DisplayName>";
    static const char more[] = "<EnumEntry Name=\"Mono12\"><Value>17825797</Value></EnumEntry>"
                               "<EnumEntry Name=\"Mono12p\"><Value>17563719</Value></EnumEntry>"
                               "<EnumEntry Name=\"Mono12Packed\"><Value>17563654</Value>"
                               "</EnumEntry>";
    ArvFakeCamera *plain = arv_fake_camera_new("plain");
    size_t n;
    const char *xml = arv_fake_camera_get_genicam_xml(plain, &n);
    const char *at = xml ? g_strstr_len(xml, (gssize)n, mark) : NULL;
    if (!at)
        return FALSE;
    const size_t before = (size_t)(at - xml) + strlen(mark);
    FILE *file = fopen(path, "wb");
    if (!file)
        return FALSE;
    gboolean ok = fwrite(xml, 1, before, file) == before;
    ok = ok && fputs(more, file) >= 0;
    ok = ok && fwrite(xml + before, 1, n - before, file) == n - before;
    return fclose(file) == 0 && ok;
}

int main(int argc, char **argv)
{
    struct pattern pattern = {.every = argc > 3 ? strtoull(argv[3], NULL, 10) : 0,
                              .lose = argc > 4 ? strtoull(argv[4], NULL, 10) : 1};
    sigset_t set;
    int got;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigprocmask(SIG_BLOCK, &set, NULL);
    if (argc < 3 || !write_description(argv[2]))
        return 2;
    ArvGvFakeCamera *camera = arv_gv_fake_camera_new_full("127.0.0.1", argv[1], argv[2]);
    if (!arv_gv_fake_camera_is_running(camera))
        return 77;
    arv_fake_camera_set_fill_pattern(arv_gv_fake_camera_get_fake_camera(camera), fill, &pattern);
    printf("ready\n");
    fflush(stdout);
    sigwait(&set, &got);
    g_object_unref(camera);
    return 0;
}
