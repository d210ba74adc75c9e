#!/usr/bin/python3
"""The eleven states of octview's window, each on a real octd and judged by what the screen shows:
the word of the status line, the header, alarms, and the picture itself. At 1280 x 720; with
OCT_LONG=1 (make check-window) at three sizes, and OCT_PICTURES names a folder that gets a picture
of each."""
from viewrig import *

# Disk faults that OCT_FAULT_FILES/stall and OCT_FAULT_FILES/full switch on: it stands still; it has
# no room.
DISK = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/statvfs.h>
#include <sys/types.h>
#include <unistd.h>
static int is_on(const char *fault)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/%s", getenv("OCT_FAULT_FILES"), fault);
    return access(path, F_OK) == 0;
}
#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
static void stand_still(void)
{
    while (is_on("stall"))
        usleep(10000);
}
ssize_t pwrite(int fd, const void *bytes, size_t n, off_t at)
{
    stand_still();
    return REAL(pwrite)(fd, bytes, n, at);
}
ssize_t pwrite64(int fd, const void *bytes, size_t n, off_t at)
{
    stand_still();
    return REAL(pwrite)(fd, bytes, n, at);
}
int fdatasync(int fd)
{
    stand_still();
    return REAL(fdatasync)(fd);
}
static int with_room(int status, struct statvfs *fs)
{
    if (is_on("full"))
        fs->f_bavail = fs->f_bfree = 1;
    return status;
}
int statvfs(const char *path, struct statvfs *fs)
{
    return with_room(REAL(statvfs)(path, fs), fs);
}
int fstatvfs(int fd, struct statvfs *fs)
{
    return with_room(REAL(fstatvfs)(fd, fs), fs);
}
"""


class Bench(Desk):
    """A desk whose disk can be stopped and filled."""

    def __init__(self, name, width, height):
        super().__init__(name, width, height, record=dict(buffer_s=0.3), scan=dict(width_um=1300))
        library = self.where + "/disk.so"
        with open(library + ".c", "w") as source:
            source.write(DISK)
        subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, library + ".c", "-ldl"],
                       check=True)
        self.faulty = dict(os.environ, LD_PRELOAD=library, OCT_FAULT_FILES=self.where,
                           ASAN_OPTIONS="verify_asan_link_order=0")

    def start_octd(self):
        self.octd = self.start("octd", *self.common, env=self.faulty)
        until(lambda: self.ask("status", patience_s=2), "octd starts")

    @contextlib.contextmanager
    def on(self, fault):
        path = os.path.join(self.where, fault)
        with open(path, "w"):
            pass
        try:
            yield
        finally:
            os.unlink(path)

    def is_still(self):
        first = self.middle()
        time.sleep(0.5)
        return np.array_equal(first, self.middle())

    def is_dim(self):
        return self.is_still() and self.middle().mean() < 0.7 * self.bright

    def header(self):
        return self.look()[:int(0.04 * self.height), :self.width // 3]

    def wait(self, word):
        self.until(lambda: self.state_is(word), word)


def waiting(desk):
    """waiting: no picture, and the word"""
    desk.open()
    desk.wait("WAITING")
    assert desk.middle().std() < 40 and desk.is_still()


def live(desk):
    """live: pictures that move"""
    desk.start_octd()
    desk.start_camera()
    desk.wait("LIVE")
    desk.until(lambda: desk.middle().mean() > 20 and not desk.is_still(), "pictures that move")
    desk.bright = desk.middle().mean()


def averaged(desk):
    """averaged: octd's average, with its number"""
    desk.click("Average")
    desk.wait("LIVE, AVERAGED")
    assert int(desk.value("average.bscans")) > 1
    number = desk.value("average.bscans")

    def number_is_seen():
        """Beside the word, or below it."""
        word = desk.find("Average", BUTTONS)
        if word is None:
            return False
        pixels = desk.look().copy()
        pixels[:, :word[0] - 60] = pixels[:, word[0] + 60:] = 0
        return desk.find(f"Average {number}", BUTTONS) or desk.find(number, BUTTONS, pixels=pixels)
    desk.until(number_is_seen, "the number in sight")
    desk.save("averaged")
    desk.keys("b")
    desk.until(lambda: not desk.state_is("LIVE, AVERAGED"), "each B-scan")


def recording(desk):
    """recording: the header is red as soon as octd says so"""
    desk.keys("1")
    desk.until(lambda: desk.value("record.eye") == "OD", "the eye")
    desk.keys("t")
    desk.type("P-7")
    desk.keys("Return")
    desk.until(lambda: desk.value("record.pseudonym") == "P-7", "the pseudonym")
    desk.wait("LIVE")
    assert share(desk.header(), RECORD) == 0
    desk.click("Record")
    desk.until(lambda: share(desk.header(), RECORD) > 0.6, "a red header")
    assert desk.ask("status")["record"]["active"]
    desk.until(lambda: desk.ask("status")["volumes_written"] >= 1, "a volume")
    assert not desk.is_still()


def saved(desk):
    """saved: what was kept is said; ochre where the last volume is a piece"""
    desk.click("Stop")
    desk.until(lambda: not desk.ask("status")["record"]["active"], "the end of it")
    desk.until(lambda: share(desk.header(), RECORD) == 0 and
               max(share(desk.header(), GOOD), share(desk.header(), WARN)) > 0.01, "what was saved")
    desk.until(desk.says("SAVED", HEADER), "the word")


def playback(desk):
    """playback: the recording just made, in the same window"""
    desk.click("Playback")
    desk.wait("PLAYBACK")
    desk.until(lambda: desk.middle().mean() > 10, "its picture")
    assert desk.find("Keep", BUTTONS) and desk.find("Repeat", BUTTONS)


def frozen(desk):
    """frozen: the picture stands, and says so itself"""
    desk.click("Live")
    desk.wait("LIVE")
    desk.click("Freeze")
    desk.wait("FROZEN")
    assert desk.is_still() and desk.middle().mean() > 0.5 * desk.bright  # it is measured


def no_signal(desk):
    """no signal: the picture is dimmed and hatched, a banner stands beside it"""
    desk.click("Go on")
    desk.wait("LIVE")
    desk.stop_camera()
    desk.wait("NO SIGNAL")
    desk.until(desk.is_dim, "a dim picture that stands")
    # As many pixels at every size: letters have a size in points.
    def is_told():
        strip = desk.look()[36:desk.height // 4]
        return share(strip, BAD) * strip[..., 0].size > 300
    desk.until(is_told, "the banner, which other alarms share in turn")


def disk_full(desk):
    """disk full: said before the next recording"""
    desk.start_camera()
    desk.wait("LIVE")
    with desk.on("full"):
        desk.until(desk.says("DISK FULL: nothing can be recorded", BANNERS), "DISK FULL")
        desk.save("disk-full")
    desk.until(lambda: not desk.says("DISK FULL: nothing can be recorded", BANNERS)(), "its end")


def not_recorded(desk):
    """not recorded: B-scans that a disk did not take are told until F3"""
    desk.click("Record")
    desk.until(lambda: desk.ask("status")["record"]["active"], "a recording")
    done = lambda: desk.ask("status")["bscans_done"]
    waits = lambda: desk.ask("status")["record"]["bscans_waiting"]
    with desk.on("stall"):
        desk.until(lambda: waits() >= desk.ask("status")["record"]["buffer_bscans"], "no room")
        last = done() + 300
        desk.until(lambda: done() > last, "B-scans that are lost")

    desk.until(lambda: desk.ask("status")["record_account"]["dropped"]["disk_slow"] > 0, "a loss")
    alarm = desk.says("NOT RECORDED", BANNERS)
    desk.until(alarm, "NOT RECORDED")
    desk.save("not-recorded")
    desk.keys("F3")
    desk.until(lambda: not alarm(), "taken note of")
    desk.click("Stop")
    desk.until(lambda: not desk.ask("status")["record"]["active"], "the end of it")


def gone(desk):
    """octd gone: a dim picture, a banner, and no recording"""
    desk.wait("LIVE")
    desk.kill_octd()
    desk.wait("OCTD IS GONE")
    desk.until(desk.is_dim, "a dim picture that stands")
    assert desk.viewer.poll() is None


STATES = (waiting, live, averaged, recording, saved, playback, frozen, no_signal, disk_full,
          not_recorded, gone)
desks = {}


def of_size(state, size):
    def check():
        if state is waiting:
            desks[size] = Bench("states-%dx%d" % size, *size)
        if size not in desks:
            raise Skip("no window")
        desk = desks[size]
        try:
            state(desk)
        finally:
            if state not in (averaged, disk_full, not_recorded):  # saved before they are over
                desk.save(state.__name__.replace("_", "-"))
            if state is gone:
                desk.close()
    check.__doc__ = "%dx%d, %s" % (*size, state.__doc__)
    case(check)


for size in SIZES if LONG else SIZES[:1]:
    for state in STATES:
        of_size(state, size)
try:
    main()
finally:
    for desk in desks.values():
        desk.close()
