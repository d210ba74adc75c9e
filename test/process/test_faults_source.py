#!/usr/bin/python3
"""Sources that misbehave by plan: dropped, repeated, reordered and delayed blocks are counted
exactly; a source that dies in the middle of a volume and comes back; clocks that step and numbers
near their ends."""
import glob, random, threading
import h5py
from octfaults import *

BLOCK = 7  # A-lines a message: B-scans begin and end anywhere in one
N_BSCANS = 2000 if LONG else 300
SEEDS = range(1, 9) if LONG else (1, 2)


# ---- the plan and what must come of it ----

def plan(seed, n_lines):
    """[(sequence, first line, lines)] in the order of sending, from a seed."""
    rng = random.Random(seed)
    blocks = [(k, k * BLOCK, min(BLOCK, n_lines - k * BLOCK))
              for k in range((n_lines + BLOCK - 1) // BLOCK)]
    first, last, sent, k = blocks[0], blocks[-1], [], 1
    while k < len(blocks) - 1:
        fault = rng.random()
        if fault < 0.03:  # dropped: one to a whole B-scan and more
            k += rng.choice([1, 1, 2, 8])
            continue
        sent.append(blocks[k])
        if fault < 0.06:
            sent.append(blocks[k])  # repeated
        elif fault < 0.09:
            sent[-2:] = sent[-2:][::-1]  # reordered
        elif fault < 0.11:  # delayed by up to 20 messages
            sent.pop()
            held = blocks[k]
            for _ in range(rng.randint(2, 20)):
                k += 1
                if k < len(blocks) - 1:
                    sent.append(blocks[k])
            sent.append(held)
        k += 1
    return [first, *sent, last]


class Expected:
    """What the assembler's header says, in Python: counts, and missing lines by B-scan."""

    def __init__(self, messages):
        self.count = dict.fromkeys(
            "lines_received lines_missing lines_duplicate lines_late messages_received "
            "messages_duplicate messages_missed messages_reordered bscans_begun".split(), 0)
        self.missing = {}  # B-scan: missing lines; those skipped whole are not in it
        self.open, self.present, self.next = False, set(), 0
        seen, highest = set(), -1
        for sequence, first, n in messages:
            self.count["messages_received"] += 1
            if sequence in seen:
                self.count["messages_duplicate"] += 1
                self.count["lines_duplicate"] += n
                continue
            seen.add(sequence)
            if sequence > highest:
                self.count["messages_missed"] += sequence - highest - 1
                highest = sequence
            else:
                self.count["messages_reordered"] += 1
            for line in range(first, first + n):
                self.take(line)
        if self.open:
            self.close()

    def take(self, line):
        bscan = line // M
        if bscan < self.next:
            self.count["lines_late"] += 1
            return
        if not self.open or bscan != self.next:
            if self.open:
                self.close()
            self.count["lines_missing"] += M * (bscan - self.next)
            self.open, self.present, self.next = True, set(), bscan
            self.count["bscans_begun"] += 1
        assert line not in self.present  # repeats are told by their sequence numbers
        self.present.add(line)
        self.count["lines_received"] += 1
        if len(self.present) == M:
            self.close()

    def close(self):
        self.missing[self.next] = M - len(self.present)
        self.count["lines_missing"] += M - len(self.present)
        self.open, self.next = False, self.next + 1


class Poller:
    """Asks for the status all the time, from a thread: sums hold in each, counts only grow."""

    def __init__(self, daemon):
        self.daemon, self.n, self.error, self.ends = daemon, 0, None, False
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        last = None
        try:
            while not self.ends:
                status = self.daemon.send("status")
                check_sums(status)
                if last:
                    check_monotonic(last, status)
                last, self.n = status, self.n + 1
        except Exception as error:
            self.error = error

    def end(self):
        until(lambda: self.n > 20 or self.error, "twenty statuses")
        self.ends = True
        self.thread.join()
        if self.error:
            raise self.error


def rows(daemon):
    """(number of the B-scan: missing lines) of all valid rows in the recorded files."""
    found = {}
    for name in glob.glob(daemon.records + "/*.h5"):
        file = h5py.File(name)
        volume = int(name[name.rindex("_v") + 2:-3])
        valid = file["frames/valid"][:].astype(bool)
        missing = file["frames/missing_lines"][:]
        found.update({volume * V + int(b): int(missing[b]) for b in np.flatnonzero(valid)})
    return found


def send_by_plan(seed):
    n_lines = N_BSCANS * M
    messages = plan(seed, n_lines)
    expected, rng = Expected(messages), random.Random(seed + 1000)
    with Daemon(*BASE, "--set", "ingest.idle_s=0") as daemon:
        assert daemon.ask("record", action="start")["ok"]
        poller, sender = Poller(daemon), Sender(daemon, seed)
        for number, (sequence, first, n) in enumerate(messages):
            if rng.random() < 0.002:
                time.sleep(rng.random() * 0.05)  # delayed in time
            at = first % (len(LINES) - BLOCK)
            flags = 1 if number == 0 else 2 if number == len(messages) - 1 else 0
            sender.send(LINES[at:at + n], first, flags=flags, sequence=sequence)
        begun = expected.count["bscans_begun"]
        status = daemon.wait(lambda s: s["bscans_begun"] >= begun and s["bscans_in_flight"] == 0)
        poller.end()
        for key, value in expected.count.items():
            assert status[key] == value, (seed, key, status[key], value)
        assert sum(status["bscans_dropped"].values()) == 0, status
        assert daemon.ask("stop")["ok"]
        status = daemon.status()
        assert status["bscans_written"] == begun and status["bscans_unsaved"] == 0, status
        assert rows(daemon) == expected.missing, seed
        assert daemon.end() == 0
    print(f"# seed {seed}: {len(messages)} messages, {expected.count}", flush=True)
    return expected.count


@case
def seeded_plans():
    """drops, repeats, reorders and delays by a seeded plan: counts and files exactly the plan's"""
    totals = [send_by_plan(seed) for seed in SEEDS]
    for key in totals[0]:  # each fault was there at all
        assert sum(total[key] for total in totals) > 0, key
    seen(f"{len(totals)} plans: " + ", ".join(f"{sum(total[key] for total in totals)} {key}"
                                              for key in totals[0]))


@case
def sums_hold_at_every_moment():
    """what a status says holds at every moment, while recordings begin and end under a fast source"""
    with Daemon(*BASE, *settings(record=dict(sync_interval_s=0.01))) as daemon, \
            Player(daemon, rate=60000):
        begun, last, n = time.monotonic(), None, 0
        until_s = 60 if LONG else 5
        # A disk that takes long: on until something was recorded.
        while (now_s := time.monotonic() - begun) < until_s or (
                not last["bscans_written"] and now_s < PATIENCE_S):
            if n % 50 in (0, 25):
                daemon.send("record", action="stop" if n % 50 else "start")
            status = daemon.status()
            if last:
                check_monotonic(last, status)
            last, n = status, n + 1
        assert status["bscans_written"] > 0 and n > 100, (n, status)
        print(f"# {n} statuses, {status['volumes_written']} volumes", flush=True)
        assert daemon.end() == 0, daemon.log()


# ---- a source that dies ----

@case
def source_dies_and_comes_back():
    """a source killed in the middle of a volume: degraded, then running, new epoch, same octd"""
    # Volumes that take a minute, so that wherever it dies, that is in the middle of one.
    with Daemon(*BASE, *settings(ingest=dict(idle_s=1.5), scan=dict(bscans=1200))) as daemon:
        assert daemon.ask("record", action="start")["ok"]
        epochs = []
        for number in range(6 if LONG else 3):
            before = daemon.status()["lines_received"]
            with Player(daemon, rate=400) as player:
                status = daemon.wait(lambda s: s["source"]["streaming"] and s["degraded"] == []
                                     and s["lines_received"] >= before + 60)
                assert status["phase"] == "recording" and status["state"] == "recording"
                player.kill()
            epochs.append(status["source"]["epoch"])
            status = daemon.wait(lambda s: s["degraded"] == ["source"])
            assert dict(epoch=epochs[-1], streaming=False, lost=True, losses=number + 1,
                        resynchronised=0).items() <= status["source"].items(), status["source"]
            assert status["phase"] == "recording"  # it goes on with the next volume
        assert daemon.ask("record", action="stop")["ok"]
        daemon.wait(lambda s: s["phase"] == "armed" and s["degraded"] == ["source"])
        with Player(daemon, rate=400):
            status = daemon.wait(lambda s: s["phase"] == "running")
            assert status["degraded"] == []
            epochs.append(status["source"]["epoch"])
        daemon.wait(lambda s: s["phase"] == "armed")
        assert len(set(epochs)) == len(epochs)
        check_sums(daemon.status())
        assert daemon.log().count("fell silent") >= len(epochs) - 1, daemon.log()
        assert daemon.log().count("lines come again") >= len(epochs) - 1, daemon.log()
        names = glob.glob(daemon.records + "/*")
        assert len(names) >= len(epochs) - 1 and not any(n.endswith(".part") for n in names), names
        assert daemon.end() == 0, daemon.log()
        seen(f"killed {len(epochs)} times, back with {len(set(epochs))} epochs, same octd")


@case
def one_wrong_line_number():
    """a header whose line number leaps far ahead costs the 16 messages after it, not the stream"""
    # A ring for all of it: with half a ring waiting octd goes on at the newest picture.
    with Daemon(*BASE, *settings(pipeline=dict(ring_bscans=128))) as daemon:
        subscriber = daemon.subscriber()
        sender, n = Sender(daemon, 1), 40
        for b in range(n):
            at = b % V * M
            sender.send(LINES[at:at + M], b * M if b != 5 else 200_000_000 * M, flags=b == 0)
        status = daemon.wait(lambda s: s["bscans_done"] == n - 16 and
                             s["source"]["resynchronised"] > 0)  # is looked at several times a second
        assert status["lines_late"] == 16 * M and status["acquisitions"] == 2, status
        assert status["source"]["resynchronised"] == 1, status
        assert daemon.log().count("jumped ahead") == 1, daemon.log()
        frames = [json.loads(m[1])["frame_num"] for m in
                  (subscriber.recv_multipart() for _ in range(n - 16))]
        assert frames[:5] == list(range(5)) and frames[-1] == n - 1, frames
        check_sums(daemon.status())
        assert daemon.end() == 0, daemon.log()


@case
def an_announced_end_is_no_loss():
    """a source that says that it ends, or ends with a volume, leaves nothing degraded"""
    with Daemon(*BASE, "--set", "ingest.idle_s=1") as daemon:
        sender = Sender(daemon, 1)
        sender.send(LINES[:M], 0, flags=1)
        sender.send(LINES[M:3 * M], M, flags=2)
        daemon.wait(lambda s: s["bscans_done"] == 3 and s["phase"] == "armed")
        sender = Sender(daemon, 2)
        sender.send(LINES[:V * M], 0, flags=1)
        status = daemon.wait(lambda s: s["bscans_done"] == 3 + V and s["phase"] == "armed")
        assert status["degraded"] == [] and status["source"]["losses"] == 0, status["source"]


# ---- clocks and numbers ----

@case
def clock_steps():
    """the wall clock steps an hour forth and back: accounting and uptime stay monotonic"""
    faults = Faults("clock")
    with faults.environment():
        daemon = Daemon(*BASE)
    with daemon:
        assert daemon.ask("record", action="start")["ok"]
        poller = Poller(daemon)
        with Player(daemon, rate=4000):
            for step in ("3600", "-3600", "7200", "0"):
                with faults.on("clock", step):
                    before = daemon.status()["volumes_written"]
                    daemon.wait(lambda s, b=before: s["volumes_written"] >= b + 4)
        poller.end()
        status = daemon.status()
        assert status["uptime_s"] < 600 and status["latency_us"]["max"] < 60e6, status
        assert sum(status["bscans_dropped"].values()) == 0 and status["lines_missing"] == 0
        assert daemon.ask("stop")["ok"]
        written = daemon.wait(lambda s: not s["record"]["active"])["bscans_written"]
        # No file took another's place although the clock named the same seconds again.
        names = glob.glob(daemon.records + "/*.h5")
        assert len({name[name.rindex("/"):][:13] for name in names}) >= 2, names
        assert sum(int(h5py.File(n)["frames/valid"][:].sum()) for n in names) == written
        assert daemon.end() == 0


@case
def numbers_near_their_ends():
    """sequence numbers and line numbers near 2^32 and 2^64: counts go on as before"""
    for sequence, line in ((2**32 - 5, 0), (2**64 - 5, 0), (0, (2**32 // M - 5) * M),
                           (2**64 - 5, (2**64 // M - 11) * M)):
        with Daemon(*BASE) as daemon:
            poller, sender = Poller(daemon), Sender(daemon, 1)
            for b in range(10):
                if b == 6:
                    continue  # a gap behind the turn
                sender.send(LINES[b * M:(b + 1) * M], line + b * M, flags=b == 0 and line == 0,
                            sequence=(sequence + b) % 2**64)
            status = daemon.wait(lambda s: s["bscans_done"] >= 9)
            poller.end()
            assert status["lines_received"] == 9 * M and status["lines_missing"] == M, status
            assert status["messages_missed"] == 1 and status["messages_duplicate"] == 0, status
            assert sum(status["messages_bad"].values()) == 0, status["messages_bad"]
            # One line beyond the last number there is.
            sender.send(LINES[:M], 2**64 - 5, sequence=(sequence + 10) % 2**64)
            status = daemon.wait(lambda s: s["messages_bad"]["lines"] == 1)
            assert status["lines_received"] == 9 * M
            assert daemon.end() == 0


main()
