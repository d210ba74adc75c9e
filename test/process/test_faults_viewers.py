#!/usr/bin/python3
"""Viewers that stop reading, and a thousand that come and vanish, while everything is recorded:
nothing recorded is lost, what a viewer loses is its own loss, descriptors and memory stay flat."""
import select, socket
from octfaults import *

N_VANISH = 10000 if LONG else 1000
DEPTH = 1024
# How much more memory may grow where a sanitizer keeps its own beside every byte and allocation.
MEMORY = 12 if SLOW else 1
# Rings and queue for a second and more, so that what a busy machine delays is not lost: octd's
# publisher goes on at the newest picture when half a ring waits for it.
# The recorder's memory for a slow disk is taken at the start (record.last_s), so that what ever had
# to wait there does not look like growth.
RATE = 4000
TALL = LONG_VOLUMES + settings(
    scan=dict(line_rate_hz=RATE), pipeline=dict(crop_last=DEPTH, ring_bscans=512),
    publish=dict(queue_bscans=200), record=dict(buffer_s=10, last_s=0.1))

# A viewer in a process of its own: counts pictures and the gaps between their numbers, until it is
# told to end and nothing more comes.
VIEWER = """
import json, sys, zmq
sys.path.insert(0, sys.argv[3])
from octtest import connected
socket = zmq.Context().socket(zmq.SUB)
socket.rcvhwm = int(sys.argv[2])
socket.setsockopt(zmq.RCVBUF, 65536)
socket.setsockopt(zmq.SUBSCRIBE, b"bscan")
connected(socket, lambda: socket.connect(sys.argv[1]))
print("here", flush=True)
poller = zmq.Poller()
poller.register(socket, zmq.POLLIN)
poller.register(sys.stdin.fileno(), zmq.POLLIN)
first, last, received, lost, told = None, None, 0, 0, False
while True:
    ready = dict(poller.poll(1000 if told else None))
    if socket in ready:
        number = json.loads(socket.recv_multipart()[1])["frame_num"]
        first = number if first is None else first
        if last is not None and number > last + 1:
            print("again", flush=True)
            lost += number - last - 1
        last, received = number, received + 1
    elif ready:
        told = True
        poller.unregister(sys.stdin.fileno())
    else:
        break
print(json.dumps(dict(first=first, last=last, received=received, lost=lost)), flush=True)
"""


class Viewer:
    def __init__(self, daemon, pictures=0):
        """pictures: that it holds itself; 0: as many as come."""
        self.process = subprocess.Popen([sys.executable, "-c", VIEWER, daemon.publish,
                                         str(pictures), os.path.join(TOP, "test/process")],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.process.stdout.readline() == b"here\n"

    def signal(self, number):
        self.process.send_signal(number)

    def goes_on(self):
        """Waits until it has received a picture behind a gap."""
        out = self.process.stdout
        assert select.select([out], [], [], PATIENCE_S)[0] and out.readline() == b"again\n"

    def result(self):
        out = self.process.communicate(b"\n", timeout=PATIENCE_S)[0]
        return json.loads(out.splitlines()[-1])


def resident_kb(daemon):
    """The least in a second: blocks on their way to the disk come and go with their file."""
    def now():
        return int(open(f"/proc/{daemon.process.pid}/status").read().split("VmRSS:")[1].split()[0])
    least, end = now(), time.monotonic() + 1
    while time.monotonic() < end:
        least = min(least, now())
        time.sleep(0.01)
    return least


def descriptors(daemon):
    return len(os.listdir(f"/proc/{daemon.process.pid}/fd"))


def expect_all_recorded(daemon):
    """Stops; everything that was begun since the recording began is in files."""
    assert daemon.ask("stop")["ok"]
    status = daemon.wait(lambda s: s["bscans_published"] + s["bscans_not_published"]
                         == s["bscans_done"])
    assert status["lines_missing"] <= M and sum(status["bscans_dropped"].values()) == 0, status
    assert status["bscans_written"] == status["bscans_begun"], status
    assert status["bscans_unsaved"] == 0, status
    return status


@case
def stopped_viewer():
    """a viewer is SIGSTOPped: recorded loss 0, the other viewer sees all, the loss is its own"""
    with Daemon(*BASE, *TALL, env=NOTHING_HELD_BACK) as daemon:
        stopped, healthy = Viewer(daemon, pictures=4), Viewer(daemon)
        assert daemon.ask("record", action="start")["ok"]
        with Player(daemon, RATE, *LONG_VOLUMES):
            daemon.wait(lambda s: s["bscans_published"] > 50)
            stopped.signal(signal.SIGSTOP)
            before = resident_kb(daemon)
            many = 20000 if LONG else 600 if SLOW else 2000
            halted = daemon.status()["bscans_published"]
            daemon.wait(lambda s: s["bscans_published"] > halted + many // 2, 4 * PATIENCE_S)
            middle = resident_kb(daemon)
            daemon.wait(lambda s: s["bscans_published"] > halted + many, 4 * PATIENCE_S)
            after = resident_kb(daemon)
            stopped.signal(signal.SIGCONT)
            stopped.goes_on()
        status = expect_all_recorded(daemon)
        other, mine = healthy.result(), stopped.result()
        print(f"# published {status['bscans_published']}, healthy {other}, stopped {mine}, "
              f"resident {before} {middle} {after} kB", flush=True)
        assert status["bscans_published"] == status["bscans_done"], status
        assert other["lost"] == 0 and other["received"] == status["bscans_published"], other
        assert mine["lost"] > many // 2 and mine["first"] == other["first"], (mine, other)
        assert halted + many // 2 < mine["last"] <= other["last"], (halted, mine, other)
        # The pictures that wait for it are bounded by publish.queue_bscans: without that bound it
        # would be many / 2 of 20 kB. On a busy machine some wait for the other viewer and the disk.
        assert after - middle < 16 * MEMORY * 1024, (before, middle, after)
        assert daemon.end() == 0
        seen(f"{status['bscans_published']} B-scans published, all written; the other viewer took "
             f"{other['received']}, lost 0; the stopped one took {mine['received']}, lost "
             f"{mine['lost']}; resident {before / 1024:.1f}, {middle / 1024:.1f} half way, "
             f"{after / 1024:.1f} MiB")


def vanish(daemon, n):
    """n viewers come, half of them subscribe, all are gone without a word."""
    context = zmq.Context()
    for number in range(n):
        if number % 4 == 3:  # not even ZeroMQ
            with socket.socket(socket.AF_UNIX) as raw:
                raw.connect(daemon.publish.replace("ipc://", ""))
                raw.send(b"\xff\0\0\0\0\0\0\0\1\x7f" if number % 8 == 3 else b"GET / HTTP/1.1\r\n\r\n")
            continue
        viewer = context.socket(zmq.SUB)
        viewer.linger = 0
        viewer.connect(daemon.publish)
        if number % 2:
            viewer.setsockopt(zmq.SUBSCRIBE, b"bscan")
            viewer.poll(5)
        viewer.close()
    context.destroy(linger=0)


def flat(what, before, after):
    seen(f"{what}descriptors {before[0]} before, {after[0]} after; resident "
         f"{before[1] / 1024:.1f}, {after[1] / 1024:.1f} MiB")


@case
def viewers_come_and_vanish():
    """thousands of viewers connect and vanish: recorded loss 0, descriptors and memory flat"""
    with Daemon(*BASE, *TALL, env=NOTHING_HELD_BACK) as daemon:
        assert daemon.ask("record", action="start")["ok"]
        with Player(daemon, RATE, *LONG_VOLUMES):
            daemon.wait(lambda s: s["bscans_written"] > 600)  # each slot of the rings was used
            vanish(daemon, 200)
            time.sleep(0.3)
            before = descriptors(daemon), resident_kb(daemon)
            vanish(daemon, N_VANISH)
            daemon.wait(lambda s: descriptors(daemon) <= before[0] + 3)
            after = descriptors(daemon), resident_kb(daemon)
            print(f"# descriptors and resident kB before {before}, after {after}", flush=True)
            assert after[1] - before[1] < 12 * MEMORY * 1024, (before, after)
        status = expect_all_recorded(daemon)
        assert status["bscans_published"] == status["bscans_done"], status
        assert daemon.end() == 0
        flat(f"{N_VANISH} viewers, {status['bscans_written']} B-scans all written; ", before, after)


@case
def viewers_vanish_while_nothing_is_published():
    """the same while no lines come: those that have gone are let go all the same"""
    with Daemon(*BASE, *TALL, env=NOTHING_HELD_BACK) as daemon:
        vanish(daemon, 500)
        # The heap of the thread that measures the engine while nothing comes.
        daemon.wait(lambda s: s["forecast"]["engine_measurements"] > 2)
        before = descriptors(daemon), resident_kb(daemon)
        vanish(daemon, N_VANISH)
        daemon.wait(lambda s: descriptors(daemon) <= before[0] + 3)
        time.sleep(0.3)
        after = descriptors(daemon), resident_kb(daemon)
        print(f"# descriptors and resident kB before {before}, after {after}", flush=True)
        assert after[1] - before[1] < 3 * MEMORY * 1024, (before, after)
        flat(f"{N_VANISH} viewers; ", before, after)


# A viewer that subscribes to argv[2] topics of argv[3] bytes, connects again whenever it is cut off,
# and ends with its standard input.
GREEDY = """
import select, sys, zmq
n, bytes_each = int(sys.argv[2]), int(sys.argv[3])
socket = zmq.Context().socket(zmq.SUB)
socket.sndhwm = socket.linger = 0
socket.connect(sys.argv[1])
for i in range(n):
    socket.setsockopt(zmq.SUBSCRIBE, (b"%08d" % i).ljust(bytes_each, b"x"))
print("here", flush=True)
while not select.select([sys.stdin], [], [], 0)[0]:
    socket.poll(20)
"""


@case
def greedy_viewers():
    """viewers with 100,000 subscriptions, 20,000 long ones and 65 are cut off, again and again: the
    camera never finds its queue full, all is recorded, another viewer loses nothing, memory is flat;
    64 subscriptions are served"""
    with Daemon(*BASE, *TALL, env=NOTHING_HELD_BACK) as daemon:
        assert daemon.ask("record", action="start")["ok"]
        healthy, many = Viewer(daemon), daemon.context.socket(zmq.SUB)
        many.rcvhwm, many.rcvtimeo = 0, PATIENCE_S * 1000
        for i in range(63):
            many.subscribe(b"nothing %08d" % i)
        many.subscribe(b"bscan")
        connected(many, lambda: many.connect(daemon.publish))
        camera = Sender(daemon, 1)
        camera.socket.close(0)
        camera.socket = daemon.context.socket(zmq.PUSH)
        camera.socket.linger, camera.socket.sndhwm = 0, 200  # a second
        camera.socket.connect(daemon.ingest)
        block = LINES[:M]
        first, due, before, greedy = 0, time.monotonic(), 0, []
        while not greedy or first < 400 * M or daemon.send("status")["security"]["viewers_cut"] < 10:
            due = max(due + M / RATE, time.monotonic() - 0.1)
            time.sleep(max(0, due - time.monotonic()))
            camera.send(block, first, flags=int(first == 0))
            assert camera.socket.poll(0, zmq.POLLOUT), "the camera's queue is full"
            first += M
            assert first < 4000 * M, "nobody is cut off"
            if first == 200 * M:
                before = resident_kb(daemon)
                greedy = [subprocess.Popen([sys.executable, "-c", GREEDY, daemon.publish, *size],
                                           stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
                          for size in (("100000", "8"), ("20000", "4000"), ("65", "8"))]
        after = resident_kb(daemon)
        for process in greedy:
            process.communicate(b"\n", timeout=PATIENCE_S)
        n = first // M
        status = expect_all_recorded(daemon)
        assert status["bscans_published"] == status["bscans_written"] == n, (n, status)
        other = healthy.result()
        cut = status["security"]["viewers_cut"]
        seen(f"{n} B-scans, all published and written; another viewer took {other['received']}; "
             f"{cut} connections cut; resident {before / 1024:.1f}, {after / 1024:.1f} MiB")
        assert other["lost"] == 0 and other["received"] == n, other
        for b in range(n):
            assert json.loads(many.recv_multipart()[1])["frame_num"] == b
        assert after - before < 32 * MEMORY * 1024, (before, after)
        assert "cut off" in daemon.log()
        assert daemon.end() == 0


main()
