#!/usr/bin/python3
"""Power cuts while recording. A disk keeps what was synced; of what was written after the last sync
it may keep anything, in any order, and sectors of a write without the others. All writes and syncs
of a recording are noted, and what a cut at a random moment could leave is rebuilt and verified."""
import random
from faultrig import *

CUTS = 400 if LONG else 25
SECTOR = 512
seed = int(os.environ.get("SEED", "0")) or random.randrange(1 << 30)
dice = random.Random(seed)


def read_journal(path):
    """[(length of the journal behind it, inode, (offset, bytes) of a write or None for a sync)]"""
    entries = []
    with open(path, "rb") as journal:
        while head := journal.read(32):
            inode, offset, n_bytes, is_sync = struct.unpack("<4Q", head)
            entry = None if is_sync else (offset, journal.read(n_bytes))
            entries.append((journal.tell(), inode, entry))
    return entries


def by_file(journal, sizes, most=float("inf")):
    """{inode: [entries in order]} of these files, up to this length of the journal."""
    files = {inode: [] for inode in sizes}
    for behind, inode, entry in journal:
        if inode not in sizes or behind > most:
            continue
        # A file begins so; under its inode the forecast may have had another, deleted since.
        if files[inode] or entry and entry[0] == 0 and entry[1].startswith(b"\x89HDF"):
            files[inode].append(entry)
    return files


def cut(entries, n_bytes, at):
    """The file after a power cut before entry `at`, or None while it had no name."""
    last_sync = max((i for i in range(at) if entries[i] is None), default=None)
    if last_sync is None:
        return None
    image = bytearray(n_bytes)
    for entry in entries[:last_sync]:
        if entry:
            image[entry[0]:entry[0] + len(entry[1])] = entry[1]
    unsynced = [e for e in entries[last_sync:at] if e]
    dice.shuffle(unsynced)
    for offset, data in unsynced:
        end = offset + len(data)
        fate = dice.choice((0, 1, dice.random()))
        for sector in range(offset // SECTOR, (end + SECTOR - 1) // SECTOR):
            if dice.random() < fate:
                a, b = max(offset, sector * SECTOR), min(end, (sector + 1) * SECTOR)
                image[a:b] = data[a - offset:b - offset]
    return image


def recorded(meanwhile):
    """Records, four volumes at least, with meanwhile(daemon, journal's path) asked all the time;
    returns the journal and {inode: bytes} of the recording's files."""
    path = os.path.join(folder("journal"), f"journal{Daemon.count}")
    with Faulty(*settings(record=dict(sync_interval_s=0.05)), journal=path) as daemon, \
            Camera(daemon) as camera:
        assert daemon.ask("record", action="start")["ok"]
        while meanwhile(daemon, path)["volumes_written"] < 4:
            time.sleep(0.01)
        camera.stop()
        assert daemon.end() == 0
        sizes = {os.stat(name).st_ino: os.stat(name).st_size for name in names(daemon)}
    journal = read_journal(path)
    os.unlink(path)
    assert len(sizes) >= 4 and all(by_file(journal, sizes).values())
    return journal, sizes


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
    journal, sizes = recorded(lambda daemon, path: daemon.status())
    files = by_file(journal, sizes)
    n_rows, n_without = 0, 0
    for _ in range(CUTS):
        inode = dice.choice(sorted(files))
        # Just before a sync most is at stake.
        syncs = [i for i, entry in enumerate(files[inode]) if entry is None]
        at = dice.choice(syncs) if dice.random() < 0.7 else dice.randrange(len(files[inode]) + 1)
        image = cut(files[inode], sizes[inode], at)
        if image is None:
            n_without += 1
            continue
        n_rows += verified(image)
    assert n_rows > CUTS, n_rows
    seen(f"{CUTS} cuts, {CUTS - n_without} files (all open; the others had no name yet), {n_rows} "
         "B-scans counted as written, all with right bytes and CRC-32C")


@case
def what_the_status_counted_is_there():
    """the power is cut just after a status: every B-scan that it counted as written is there"""
    said = []

    def ask(daemon, path):
        status = daemon.status()
        said.append((os.path.getsize(path), status["bscans_written"]))
        return status

    journal, sizes = recorded(ask)
    said = dice.sample(said, min(CUTS // 5, len(said)))
    for length, written in said:
        files = by_file(journal, sizes, length)
        images = [cut(entries, sizes[inode], len(entries)) for inode, entries in files.items()]
        there = sum(verified(image) for image in images if image)
        assert there >= written, f"{written} were reported as written, {there} are there"
    seen(f"{len(said)} cuts, up to {max(written for _, written in said)} B-scans reported as "
         "written, none missing")


main()
