#!/usr/bin/python3
"""Recordings in octweb: what is listed and opened, and that nobody waits for a disk: its thread
serves all browsers."""
from webrig import *

publisher = Publisher()
RECORDS = folder("records")  # faultio.c knows it by this name
PLAN = at("plan")
field = settings(scan=dict(lines=16, bscans=4, width_um=300, height_um=300))
ok("synth", f"{RECORDS}/retina.h5", *field, "--seed", 3, "--calibration", at("cal"))
WHOSE = ["--config", at("cal", "calibration.ini"), "--set", f"record.directory={RECORDS}",
         *settings(pipeline=dict(backend="cpu"))]
web = Web(publisher.endpoint, "tcp://127.0.0.1:1", *WHOSE, tokens=RECORDS + "/tokens",
          env=dict(LD_PRELOAD=os.path.abspath(program("test/faultio.so")), FAULTIO=PLAN)
          if not SLOW else {})


@contextlib.contextmanager
def disk(plan):
    """With that wrong with it (test/preload/faultio.c)."""
    if SLOW:
        raise Skip("a sanitizer's library has to be the first")
    with open(PLAN, "w") as file:
        file.write(plan)
    yield
    os.remove(PLAN)


def goes_on(looker, n=20, within_s=3):
    """Live pictures come, and none was waited for."""
    began = time.monotonic()
    gaps = []
    for _ in range(n):
        before = time.monotonic()
        looker.picture()
        gaps.append(time.monotonic() - before)
    assert time.monotonic() - began < within_s * (8 if SLOW else 1), gaps
    return max(gaps)


def refusal(looker):
    return looker.next(lambda m: "refused" in m)["refused"]


def listed(looker, **of):
    looker.say(list=True, **of)
    return looker.next(lambda m: "recordings" in m and m["of"] == of.get("of", ""))


def plays(looker, name="retina.h5"):
    looker.say(open=name)
    return looker.state(lambda s: s.get("playback", {}).get("name") == name)


@case
def stalled_disk():
    """a recording that a disk does not give keeps pictures from nobody, nor does leaving it"""
    first, second = Looker(web, web.cookie("first", "look")), Looker(web, web.cookie("second"))
    first.picture()
    with disk("open_stall 3000"):
        first.say(open="retina.h5")
        until(lambda: web.metric("playbacks") == 1, "the playback")
        seen(f"opening: {goes_on(second) * 1e3:.0f} ms at most between two pictures")
        first.say(live=True)
        seen(f"leaving: {goes_on(second) * 1e3:.0f} ms")
        goes_on(first)
        first.say(open="retina.h5")
        until(lambda: web.metric("playbacks") == 2, "the playback")
        first.close()  # while it is being opened
        goes_on(second)
    until(lambda: web.metric("playbacks") == 0, "playbacks to end")
    second.close()


@case
def stalled_folder():
    """a folder that does not answer keeps pictures from nobody, and is told of"""
    first, second = Looker(web, web.cookie("first", "look")), Looker(web, web.cookie("second"))
    with disk("list_stall 4000"):
        first.say(list=True)
        goes_on(second)
        first.say(open="retina.h5")
        assert "does not answer" in refusal(first)
        goes_on(first)
        first.say(live=True)  # not opened when it comes
    first.next(lambda m: "recordings" in m)
    goes_on(first, 60, 6)
    assert web.metric("playbacks") == 0
    first.close()
    second.close()


@case
def stalled_login():
    """a login whose file is synced for seconds keeps pictures from nobody"""
    looker = Looker(web)
    token = web.link("later", "look").split("#")[1]
    with disk("sync_stall 1500"):
        said = []
        thread = threading.Thread(
            target=lambda: said.append(web.get("/enter", "POST", token, Origin=web.base)[0]))
        thread.start()
        seen(f"{goes_on(looker) * 1e3:.0f} ms at most between two pictures")
        thread.join(PATIENCE_S)
        assert said == [200], said
    looker.close()


@case
def no_recording():
    """what is no recording, or none any more, is refused in words, and the connection stays"""
    for name in "broken.h5", ".hidden.h5", "open.h5.part":
        with open(f"{RECORDS}/{name}", "wb") as file:
            file.write(b"no HDF5" * 100)
    os.symlink("/etc/passwd", RECORDS + "/link.h5")
    os.mkfifo(RECORDS + "/pipe.h5")
    looker = Looker(web)
    assert [r["name"] for r in listed(looker)["recordings"]] == ["broken.h5", "retina.h5"]
    for name in (*4 * ["broken.h5"], "link.h5", "pipe.h5", "gone.h5"):
        looker.say(open=name)
        assert name in refusal(looker), name
        looker.picture()
    looker.close()
    for name in ".hidden.h5", "open.h5.part", "../records/broken.h5", "", "." * 300, "a/b.h5":
        looker = Looker(web)
        looker.say(open=name)
        assert looker.ends(10) is not None, name


@case
def search():
    """the list is searched in octd's folder, not among the newest alone"""
    for i in range(250):
        with open(f"{RECORDS}/many_{i:03}_P-{i % 7}.h5", "wb"):
            pass
        os.utime(f"{RECORDS}/many_{i:03}_P-{i % 7}.h5", (1e9 + i, 1e9 + i))
    looker = Looker(web)
    all_ = listed(looker)
    assert len(all_["recordings"]) == 200 and all_["all"] == 252
    found = listed(looker, of="MANY_00")
    assert [r["name"] for r in found["recordings"]] == \
        [f"many_{i:03}_P-{i % 7}.h5" for i in range(9, -1, -1)] and found["all"] == 10
    assert listed(looker, of="no such one")["all"] == 0
    looker.close()
    for path in glob.glob(RECORDS + "/many_*"):
        os.remove(path)


@case
def floods():
    """who asks for lists, recordings and places without end gets some, and others their pictures"""
    flood, other = Looker(web, web.cookie("flood", "look")), Looker(web)
    came = []

    async def ask():
        for i in range(1500):
            await flood.socket.send(json.dumps(
                [dict(list=True), dict(open="retina.h5"), dict(go=i % 4), dict(live=True)][i % 4]))
            await asyncio.sleep(1 / 150)

    async def count():
        while True:
            text = await flood.socket.recv()
            if isinstance(text, str) and '"recordings"' in text:
                came.append(time.monotonic())
    task = loop.create_task(count())
    asking = loop.create_task(ask())
    seen(f"{goes_on(other, 200, 15) * 1e3:.0f} ms at most between two pictures")
    wait(asking)
    task.cancel()
    assert 5 < len(came) < 30, len(came)
    flood.close()
    other.close()


@case
def many_play():
    """as many play as octweb can, who comes later is told, and each that leaves makes room"""
    lookers = [Looker(web, web.cookie(f"player{i}", "look")) for i in range(5)]
    for looker in lookers[:4]:
        plays(looker)
    lookers[4].say(open="retina.h5")
    assert "others play" in refusal(lookers[4])
    lookers[0].close()
    until(lambda: web.metric("playbacks") == 3, "room")
    plays(lookers[4])
    for looker in lookers[1:]:
        looker.close()


@case
def label_is_written():
    """a label that was given just before leaving stands in the file, and octweb's end waits for it"""
    import h5py
    looker = Looker(web)
    plays(looker)
    looker.say(pseudonym="P-7", of="retina.h5", was="")
    looker.say(live=True)
    looker.state(lambda s: "playback" not in s)
    web.stop()
    with h5py.File(RECORDS + "/retina.h5") as file:
        found = [value for value in file.attrs.values()] + \
            [value for group in file.values() for value in getattr(group, "attrs", {}).values()]
        assert any(value in ("P-7", b"P-7") for value in found if isinstance(value, (str, bytes)))


@case
def end_without_disk():
    """where a disk does not answer, octweb ends without it"""
    other = Web(publisher.endpoint, "tcp://127.0.0.1:1", *WHOSE,
                env=dict(LD_PRELOAD=os.path.abspath(program("test/faultio.so")), FAULTIO=PLAN)
                if not SLOW else {})
    looker = Looker(other)
    looker.picture()
    with disk("open_stall 20000"):
        looker.say(open="retina.h5")
        time.sleep(1)
        began = time.monotonic()
        other.stop()
        assert time.monotonic() - began < 12, time.monotonic() - began
    assert "does not answer" in open(other.log_path).read()


atexit.register(publisher.stop)
main()
