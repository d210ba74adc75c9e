#!/usr/bin/python3
"""Power cuts while recording. A disk keeps what was synced; of what was written after the last sync
it may keep anything, in any order, and sectors of a write without the others; a name is there for
certain when the folder was synced after it was given. All writes, syncs and names of a recording
are noted (test/preload/faultio.c), and what a cut at a random moment could leave is rebuilt and
verified."""
import random
from faultrig import *

CUTS = 400 if LONG else 25
SECTOR = 512
seed = int(os.environ.get("SEED", "0")) or random.randrange(1 << 30)
dice = random.Random(seed)


WRITES, SYNCS, BEGINS, NAMES, FOLDER = range(5)


def read_journal(path):
    """[(length of the journal behind it, inode, what, offset, bytes)]"""
    entries = []
    with open(path, "rb") as journal:
        while head := journal.read(32):
            inode, offset, n_bytes, what = struct.unpack("<4Q", head)
            data = journal.read(n_bytes)
            entries.append((journal.tell(), inode, what, offset, data))
    return entries


def by_file(journal, folder_inode, sizes, most=float("inf")):
    """{inode: [(what, offset, bytes) in order]} of these files, up to this length of the journal;
    the syncs of their folder are in all of them."""
    files = {inode: [] for inode in sizes}
    for behind, inode, what, offset, data in journal:
        if behind > most:
            break
        if inode == folder_inode and what == SYNCS:
            for entries in files.values():
                entries.append((FOLDER, 0, b""))
        elif inode in files and what == BEGINS:  # who had the inode before is deleted
            files[inode] = []
        elif inode in files:
            files[inode].append((what, offset, data))
    return files


def name_after(entries, worst):
    """The file's name after a power cut behind these entries, or None. The disk may have kept names
    that were given since the last sync of the folder, the older before the newer; at worst none."""
    synced = max((i for i, entry in enumerate(entries) if entry[0] == FOLDER), default=0)
    sure = [data for what, _, data in entries[:synced] if what == NAMES]
    since = [data for what, _, data in entries[synced:] if what == NAMES]
    there = sure + since[:0 if worst else dice.randint(0, len(since))]
    return there[-1].decode() if there else None


def cut(entries, n_bytes, worst=False):
    """The file's name and content after a power cut behind these entries; None: it has no name."""
    name = name_after(entries, worst)
    if name is None:
        return None
    last_sync = max((i for i, entry in enumerate(entries) if entry[0] == SYNCS), default=0)
    image = bytearray(n_bytes)
    for what, offset, data in entries[:last_sync]:
        if what == WRITES:
            image[offset:offset + len(data)] = data
    unsynced = [(offset, data) for what, offset, data in entries[last_sync:] if what == WRITES]
    dice.shuffle(unsynced)
    for offset, data in unsynced:
        end = offset + len(data)
        fate = dice.choice((0, 1, dice.random()))
        for sector in range(offset // SECTOR, (end + SECTOR - 1) // SECTOR):
            if dice.random() < fate:
                a, b = max(offset, sector * SECTOR), min(end, (sector + 1) * SECTOR)
                image[a:b] = data[a - offset:b - offset]
    return name, image


def recorded(meanwhile):
    """Records, four volumes at least, with meanwhile(daemon, journal's path) asked all the time;
    returns the journal, the folder's inode and {inode: bytes} of the recording's files."""
    path = os.path.join(folder("journal"), f"journal{Daemon.count}")
    with Faulty(*settings(record=dict(sync_interval_s=0.05)), journal=path) as daemon, \
            Camera(daemon) as camera:
        assert daemon.ask("record", action="start")["ok"]
        while meanwhile(daemon, path)["volumes_written"] < 4:
            time.sleep(0.01)
        camera.stop()
        assert daemon.end() == 0
        sizes = {os.stat(name).st_ino: os.stat(name).st_size for name in names(daemon)}
        folder_inode = os.stat(daemon.records).st_ino
    journal = read_journal(path)
    os.unlink(path)
    assert len(sizes) >= 4, sizes
    for entries in by_file(journal, folder_inode, sizes).values():
        assert {WRITES, SYNCS, NAMES} <= {what for what, _, _ in entries}
    return journal, folder_inode, sizes


def verified(image):
    """How many B-scans count as written in such a file; all of them are right."""
    out = os.path.join(folder("cuts"), "cut.h5.part")
    with open(out, "wb") as file:
        file.write(image)
    numbers, _ = look(out)
    status, _, err = run("octctl", "check", out)
    assert status == 0, err
    return len(numbers)


@case
def power_cuts():
    """the power is cut at a random moment while recording (rebuilt from all writes and syncs)"""
    print(f"# SEED={seed}", flush=True)
    journal, folder_inode, sizes = recorded(lambda daemon, path: daemon.status())
    files = by_file(journal, folder_inode, sizes)
    n_rows, n_without = 0, 0
    for _ in range(CUTS):
        inode = dice.choice(sorted(files))
        # Just before a sync most is at stake.
        syncs = [i for i, entry in enumerate(files[inode]) if entry[0] == SYNCS]
        at = dice.choice(syncs) if dice.random() < 0.7 else dice.randrange(len(files[inode]) + 1)
        left = cut(files[inode][:at], sizes[inode])
        if left is None:
            n_without += 1
            continue
        n_rows += verified(left[1])
    assert n_rows > CUTS, n_rows
    seen(f"{CUTS} cuts, {CUTS - n_without} files (all open; the others had no name yet), {n_rows} "
         "B-scans counted as written, all with right bytes and CRC-32C")


@case
def what_the_status_counted_is_there():
    """the power is cut just after a status: all B-scans and volumes that it counted are there"""
    said = []

    def ask(daemon, path):
        status = daemon.status()
        said.append((os.path.getsize(path), status["bscans_written"], status["volumes_written"]))
        return status

    journal, folder_inode, sizes = recorded(ask)
    last, said = said[-1], dice.sample(said, min(CUTS // 5, len(said)))
    for length, written, volumes in said + [last]:
        files = by_file(journal, folder_inode, sizes, length)
        left = [found for inode, entries in files.items()
                if (found := cut(entries, sizes[inode], worst=True))]
        whole = sum(not name.endswith(".part") for name, _ in left)
        assert whole >= volumes, f"{volumes} volumes were reported as whole, {whole} are there"
        there = sum(verified(image) for _, image in left)
        assert there >= written, f"{written} were reported as written, {there} are there"
    seen(f"{len(said) + 1} cuts, up to {last[1]} B-scans and {last[2]} whole volumes reported as "
         "written, none missing")


main()
