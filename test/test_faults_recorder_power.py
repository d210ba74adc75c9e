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
    """{inode: [(offset, bytes) of a write, or None for a sync]}"""
    files = {}
    with open(path, "rb") as journal:
        while head := journal.read(32):
            inode, offset, n_bytes, is_sync = struct.unpack("<4Q", head)
            files.setdefault(inode, []).append(None if is_sync else (offset, journal.read(n_bytes)))
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


@case
def power_cuts():
    """the power is cut at a random moment while recording (rebuilt from all writes and syncs)"""
    print(f"# SEED={seed}", flush=True)
    journal = os.path.join(folder("journal"), "journal")
    with Faulty(*settings(record=dict(sync_interval_s=0.05)), journal=journal) as daemon, \
            Camera(daemon) as camera:
        assert daemon.ask("record", action="start")["ok"]
        daemon.wait(lambda s: s["volumes_written"] >= 4)
        camera.stop()
        assert daemon.end() == 0
        sizes = {os.stat(name).st_ino: os.stat(name).st_size for name in names(daemon)}
    files = {inode: entries for inode, entries in read_journal(journal).items() if inode in sizes}
    assert len(files) == len(sizes) >= 4
    n_rows, n_without = 0, 0
    out = os.path.join(folder("cuts"), "cut.h5.part")
    for _ in range(CUTS):
        inode = dice.choice(sorted(files))
        # Just before a sync most is at stake.
        syncs = [i for i, entry in enumerate(files[inode]) if entry is None]
        at = dice.choice(syncs) if dice.random() < 0.7 else dice.randrange(len(files[inode]) + 1)
        image = cut(files[inode], sizes[inode], at)
        if image is None:
            n_without += 1
            continue
        with open(out, "wb") as file:
            file.write(image)
        numbers, _ = look(out)
        n_rows += len(numbers)
        status, _, err = run("octctl", "check", out)
        assert status == 0, err
    assert n_rows > CUTS, n_rows
    seen(f"{CUTS} cuts, {CUTS - n_without} files (all open; the others had no name yet), {n_rows} "
         "B-scans counted as written, all with right bytes and CRC-32C")


main()
