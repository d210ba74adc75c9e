#include "test/rig/viewer_daemon.h"

#include <stdio.h>

const char oct_scene_status[] =
    "{\"ok\":true,\"state\":\"recording\",\"last_error\":\"\",\"lines_missing\":9,\"lines_cut\":4,"
    "\"degraded\":[\"source\",\"disk\"],"
    "\"uptime_s\":50,\"lines_received\":1000,\"acquisitions\":1,"
    "\"bscans_dropped\":{\"ring_full\":2,\"engine\":1},\"bscans_done\":100,"
    "\"volumes_written\":3,\"volumes_incomplete\":0,\"bytes_written\":1e9,\"bscans_unsaved\":40,"
    "\"record_account\":{\"offered\":50,\"written\":17,\"pending\":24,\"dropped\":{\"source\":2,"
    "\"ring_full\":0,\"disk_slow\":7,\"a\\nb\":1,\"x\":\"y\"}},"
    "\"record\":{\"active\":true,\"stopping\":false,\"waiting_for_volume\":false,"
    "\"file\":\"/a/b/"
    "c.h5\",\"bscans_in_file\":17,\"bscans_waiting\":321,\"bytes_per_bscan\":1e6,\"elapsed_s\":75."
    "2,\"disk_left_s\":1234.5,"
    "\"eye\":\"OD\",\"pseudonym\":\"P-1\"},\"latency_us\":{\"p50\":4000,\"p99\":9000,\"max\":1},"
    "\"geometry\":{\"lines\":120,\"bscans\":240},\"scan\":{\"axial_um\":1.25,\"lateral_um\":2.5,"
    "\"slow_um\":null,\"line_rate_hz\":50000,\"line_rate_from\":\"config\"},\"pixels\":{\"log\":"
    "true,\"sample\":\"u8\","
    "\"saturation\":4095},\"disk_bytes_free\":6e9,"
    "\"analysis\":[{\"name\":\"quality\",\"running\":\"cpu\"},{\"name\":\"enface\",\"running\":"
    "\"cpu\",\"projection\":\"slab\",\"slab_first\":0.25,\"slab_last\":0.5}]}";

void oct_scene_hear(struct oct_view_model *model, const struct oct_view_daemon *daemon,
                    enum oct_view_wish wish, bool ok, const char *text)
{
    struct oct_view_answer answer = {.wish = wish, .ok = ok};
    snprintf(answer.text, sizeof(answer.text), "%s", text);
    oct_view_model_hear(model, daemon, &answer);
}
