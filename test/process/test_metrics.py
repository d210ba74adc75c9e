#!/usr/bin/python3
"""The metrics: Prometheus text over HTTP that says what the status says; who may ask, and how."""
import http.client, re, socket
from octfaults import *

ON = ["--set", "metrics.endpoint=127.0.0.1:0"]
SAMPLE = re.compile(r'([a-z_]+)(?:\{([a-z_]+="(?:[^"\\]|\\.)*"(?:,[a-z_]+="(?:[^"\\]|\\.)*")*)\})? (\S+)')


def port(daemon):
    return int(re.search(r"metrics on http://.*:(\d+)/metrics", daemon.log()).group(1))


def get(daemon, path="/metrics", method="GET", body=None):
    connection = http.client.HTTPConnection("127.0.0.1", port(daemon), timeout=10)
    connection.request(method, path, body)
    response = connection.getresponse()
    text = response.read().decode()
    connection.close()
    return response.status, response.getheader("Content-Type"), text


def read(text):
    """{name: {labels: value}}; every line is right, each name has one HELP and one TYPE before."""
    samples, types, helps = {}, {}, set()
    for line in text.splitlines():
        if line.startswith("# HELP "):
            name = line.split(" ", 3)[2]
            assert name not in helps, line
            helps.add(name)
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name not in types and kind in ("counter", "gauge"), line
            assert (kind == "counter") == name.endswith("_total"), line
            types[name] = kind
        else:
            match = SAMPLE.fullmatch(line)
            assert match, line
            name, labels, value = match.groups()
            assert name in types and name in helps, line
            of_name = samples.setdefault(name, {})
            assert labels not in of_name, line
            of_name[labels] = float(value)
    assert text.endswith("\n") and set(types) == set(samples), set(types) ^ set(samples)
    return samples


def one(samples, name):
    return samples[name][None]


@case
def tells_what_the_status_tells():
    """after a run the metrics are the numbers of the status, and their sums hold"""
    with Daemon(*BASE, *ON) as daemon:
        assert daemon.ask("record", action="start")["ok"]
        sender = Sender(daemon, 1)
        sender.send(LINES[:M * V], 0, flags=1)
        sender.send(LINES[:M // 2], M * V)
        sender.send(LINES[:M], M * (V + 2), sequence=5)
        sender.send(LINES[:M], 0, crc=1)
        daemon.wait(lambda s: s["messages_bad"]["crc"] == 1 and s["bscans_done"] == V + 2)
        assert daemon.ask("record", action="stop")["ok"]
        status = daemon.wait(lambda s: not s["record"]["active"]
                             and s["bscans_published"] == V + 2)
        code, kind, text = get(daemon)
        samples = read(text)
        assert code == 200 and kind == "text/plain; version=0.0.4; charset=utf-8"
        for key in ("lines_received", "lines_missing", "lines_cut", "messages_received", "messages_missed",
                    "bscans_begun", "bscans_done", "bscans_published", "bscans_written",
                    "bscans_unsaved", "volumes_written", "volumes_incomplete", "acquisitions"):
            assert one(samples, f"octd_{key}_total") == status[key], key
        assert one(samples, "octd_written_bytes_total") == status["bytes_written"] > 0
        for name, key in (("octd_messages_bad_total", "messages_bad"),
                          ("octd_bscans_dropped_total", "bscans_dropped")):
            wanted = {f'reason="{reason}"': n for reason, n in status[key].items()}
            assert samples[name] == wanted, (samples[name], wanted)
        assert samples["octd_messages_bad_total"]['reason="crc"'] == 1
        assert samples["octd_state"] == {f'state="{state}"': state == status["phase"] for state in
                                         "idle starting armed running recording draining "
                                         "error".split()}
        latency = samples["octd_latency_seconds"]
        assert 0 < latency['quantile="0.5"'] <= latency['quantile="1"'] < 60
        assert abs(latency['quantile="1"'] * 1e6 - status["latency_us"]["max"]) < 1e-3
        assert one(samples, "octd_disk_free_bytes") > 0
        account = status["record_total"]
        assert one(samples, "octd_record_offered_total") == account["offered"] > 0
        assert one(samples, "octd_record_written_total") == account["written"] > 0
        assert daemon.end() == 0


@case
def counters_never_fall():
    """a recording that begins sets no counter back: offered = written + dropped over all of them"""
    counted = re.compile(r"octd_(bscans_written|record_\w+)_total")
    before = {}
    with Daemon(*BASE, *ON) as daemon:
        for epoch in (1, 2, 3):
            assert daemon.ask("record", action="start")["ok"]
            samples = read(get(daemon)[2])
            for name in filter(counted.fullmatch, samples):
                for labels, value in samples[name].items():
                    assert value >= before.get((name, labels), 0), (name, labels, value)
            sender = Sender(daemon, epoch)
            sender.send(LINES[:M], 0, flags=1)
            sender.send(LINES[:M * (V - 3)], 3 * M)  # two B-scans never come
            daemon.wait(lambda s: s["bscans_written"] == (V - 2) * epoch)
            assert daemon.ask("record", action="stop")["ok"]
            status = daemon.wait(lambda s: not s["record"]["active"])
            samples = read(get(daemon)[2])
            assert one(samples, "octd_record_offered_total") == V * epoch, samples
            assert one(samples, "octd_record_written_total") == (V - 2) * epoch
            assert one(samples, "octd_bscans_written_total") == (V - 2) * epoch
            assert samples["octd_record_dropped_total"]['reason="source"'] == 2 * epoch
            assert one(samples, "octd_record_pending") == 0
            assert status["record_account"]["offered"] == V  # of this one
            before = {(name, labels): value for name in filter(counted.fullmatch, samples)
                      for labels, value in samples[name].items()}
        assert daemon.end() == 0


@case
def sums_hold_under_load():
    """begun = done + dropped + in flight, offered = written + dropped + pending, in each answer"""
    long = settings(scan=dict(bscans=20 * V))
    with Daemon(*BASE, *long, *ON) as daemon, Player(daemon, 4000, *long):
        daemon.wait(lambda s: s["bscans_done"] > 20)
        for action in ("start", "stop", "start"):  # an account begins with its recording
            assert daemon.ask("record", action=action)["ok"]
            daemon.wait(lambda s: s["record_account"]["written"] > 20 if action == "start"
                        else not s["record"]["active"])
        for _ in range(1000 if LONG else 100):
            samples = read(get(daemon)[2])
            assert one(samples, "octd_bscans_begun_total") == (
                one(samples, "octd_bscans_done_total") + one(samples, "octd_bscans_in_flight")
                + sum(samples["octd_bscans_dropped_total"].values())), samples
            assert one(samples, "octd_record_offered_total") == (
                one(samples, "octd_record_written_total") + one(samples, "octd_record_pending")
                + sum(samples["octd_record_dropped_total"].values())), samples
        assert daemon.status()["bscans_dropped"] == dict(ring_full=0, engine=0)


@case
def dashboard_names_what_is_there():
    """docs/dashboard.json is JSON, and each metric that it or metrics.md names is in the output"""
    board = json.load(open(os.path.join(TOP, "docs/dashboard.json")))
    expressions = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    assert len(expressions) > 10 and board["title"] == "octd"
    named = {name for text in expressions for name in re.findall(r"octd_[a-z_]+", text)}
    assert all(re.search(r"octd_[a-z_]+", text) for text in expressions)
    guide = open(os.path.join(TOP, "docs/metrics.md")).read()
    with Daemon(*BASE, *ON) as daemon:
        there = read(get(daemon)[2])
        assert named <= set(there), named - set(there)
        listed = {name for name in re.findall(r"`(octd_[a-z_]+)", guide)}
        assert listed <= set(there), listed - set(there)
        # Every metric is explained, in full or by its end after the first of its row.
        ends = re.findall(r"`(_[a-z_]+)", guide)
        missing = [name for name in there if name not in listed and
                   not any(name.endswith(end) for end in ends)]
        assert not missing, missing


@case
def only_get_of_metrics():
    """other paths, methods and what is no HTTP are refused, the daemon goes on"""
    with Daemon(*BASE, *ON) as daemon:
        assert get(daemon, "/")[0] == 404 and get(daemon, "/metrics/..")[0] == 404
        for method in ("POST", "PUT", "DELETE", "HEAD", "OPTIONS"):
            body = "x" * 100000 if method in ("POST", "PUT") else None
            try:
                code = get(daemon, "/metrics", method, body)[0]
                assert code == 405, (method, code)
            except (ConnectionError, BrokenPipeError):
                pass  # closed under what it uploads
        for junk in (b"\xff" * 4000, b"GET /metrics HTTP/9.9\r\n\r\n", b"\r\n" * 100,
                     b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\n\r\n"):
            with socket.create_connection(("127.0.0.1", port(daemon)), timeout=10) as raw:
                try:
                    raw.sendall(junk)
                    raw.shutdown(socket.SHUT_WR)
                    answer = raw.recv(4096)
                except ConnectionError:
                    answer = b""
                assert b" 200 " not in answer.split(b"\r\n")[0], (junk[:20], answer)
        assert get(daemon)[0] == 200
        assert daemon.end() == 0


@case
def connections_are_bounded():
    """forty silent connections keep neither control nor the pipeline, and are ended"""
    with Daemon(*BASE, *ON) as daemon:
        held = [socket.create_connection(("127.0.0.1", port(daemon)), timeout=20)
                for _ in range(40)]
        before = len(os.listdir(f"/proc/{daemon.process.pid}/fd"))
        Sender(daemon, 1).send(LINES[:M * V], 0, flags=1)
        daemon.wait(lambda s: s["bscans_done"] == V)
        assert before < 60, before
        until(lambda: get_or_none(daemon) is not None, "the end of silent connections")
        for connection in held:
            connection.close()
        assert daemon.end() == 0


def get_or_none(daemon):
    try:
        code, _, _ = get(daemon)
        return code
    except (OSError, http.client.HTTPException):
        return None


@case
def endpoints_that_are_refused():
    """beyond this machine, in use or malformed: refused at the start, in one line that names it"""
    for endpoint in ("0.0.0.0:9464", "192.168.1.1:9464", "*:9464", ":9464", "127.0.0.1", "[::]:1",
                     "localhost:9464", "127.0.0.1:99999", "127.0.0.1:x", "[::1", "]:1", "a]:1"):
        status, _, err = run("octd", *BASE, "--set", f"metrics.endpoint={endpoint}",
                             *settings(ingest=dict(endpoint="tcp://127.0.0.1:*"),
                                       publish=dict(endpoint="tcp://127.0.0.1:*"),
                                       control=dict(endpoint="tcp://127.0.0.1:*")))
        last = err.splitlines()[-1]
        assert status == 2 and "metrics.endpoint" in last and endpoint in last, (status, err)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        daemon = Daemon(*BASE, "--set", f"metrics.endpoint=127.0.0.1:{taken.getsockname()[1]}",
                        wait=False)
        with daemon:
            assert daemon.process.wait(PATIENCE_S) == 1
            assert "metrics.endpoint" in daemon.log().splitlines()[-1], daemon.log()
    with Daemon(*BASE) as daemon:
        assert "metrics on" not in daemon.log()


main()
