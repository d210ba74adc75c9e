"""A hospital's servers for tests: Orthanc and DCMTK's storescp as archives, wlmscpfs as worklist,
and peers that are none."""
import json, os, socket, struct, subprocess, threading, urllib.request

from octtest import folder, free_port, until


def answers(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


class Server:
    """A program that listens while the block lasts."""

    def __init__(self, *words, port=None, title="ARCHIVE"):
        self.port, self.title, self.words = port or free_port(), title, words
        self.log = os.path.join(folder("logs"), f"{words[0]}-{self.port}")
        self.start()

    def start(self):
        words = [str(w).replace("@PORT@", str(self.port)) for w in self.words]
        self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL,
                                        stdout=open(self.log, "ab"), stderr=subprocess.STDOUT)
        until(lambda: self.process.poll() is not None or answers(self.port), words[0])
        assert self.process.poll() is None, open(self.log).read()

    def kill(self):
        self.process.kill()
        self.process.wait()

    @property
    def peer(self):
        return f"{self.title}@127.0.0.1:{self.port}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()


def storescp(where, *more, **options):
    os.makedirs(where, exist_ok=True)
    return Server("storescp", "-v", *more, "-od", where, "@PORT@", **options)


class Orthanc(Server):
    def __init__(self):
        where, self.http = folder("orthanc"), free_port()
        port = free_port()
        config = dict(Name="test", StorageDirectory=where, IndexDirectory=where, HttpPort=self.http,
                      DicomPort=port, DicomAet="ORTHANC", RemoteAccessAllowed=False,
                      AuthenticationEnabled=False, Plugins=[], DicomAlwaysAllowFind=True,
                      DicomAlwaysAllowStore=True, DicomAlwaysAllowEcho=True)
        path = os.path.join(where, "orthanc.json")
        with open(path, "w") as file:
            json.dump(config, file)
        super().__init__("Orthanc", path, port=port, title="ORTHANC")
        until(lambda: answers(self.http), "Orthanc's web server")

    def get(self, path):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.http}{path}") as reply:
            return reply.read()

    def instances(self):
        """The files as they are stored."""
        return [self.get(f"/instances/{i}/file") for i in json.loads(self.get("/instances"))]


ENTRY = """(0008,0005) CS [{charset}]
(0008,0050) SH [{accession}]
(0008,0090) PN [{physician}]
(0010,0010) PN [{name}]
(0010,0020) LO [{id}]
(0010,0030) DA [{born}]
(0010,0040) CS [{sex}]
(0020,000d) UI [{study}]
(0032,1060) LO [{what}]
(0040,1001) SH [{procedure}]
(0040,0100) SQ
(fffe,e000) -
(0008,0060) CS [{modality}]
(0040,0001) AE [OCTD]
(0040,0002) DA [{date}]
(0040,0003) TM [{time}]
(0040,0009) SH [{step}]
(fffe,e00d) -
(fffe,e0dd) -
"""


class Worklist(Server):
    def __init__(self, *entries):
        self.files = folder("worklist/WL")
        for name in os.listdir(self.files):
            os.remove(os.path.join(self.files, name))
        open(os.path.join(self.files, "lockfile"), "w").close()
        for entry in entries:
            self.add(**entry)
        super().__init__("wlmscpfs", "-s", "-csk", "-dfr", "-dfp", os.path.dirname(self.files),
                         "@PORT@", title="WL")

    def add(self, **fields):
        known = dict(charset="ISO_IR 192", accession="A-1", physician="", name="Nobody", id="1",
                     born="19610203", sex="F", study="1.2.3.4", what="OCT", procedure="RP1",
                     modality="OPT", date="20301231", time="101500", step="SPS1")
        known.update(fields)
        path = os.path.join(self.files, known["id"])
        encoding = {"ISO_IR 192": "utf-8", "ISO_IR 100": "latin-1"}[known["charset"]]
        with open(path + ".dump", "w", encoding=encoding) as file:
            file.write(ENTRY.format(**known))
        subprocess.run(["dump2dcm", "-q", path + ".dump", path + ".wl"], check=True)
        os.remove(path + ".dump")


class Peer:
    """Treats each connection by talk(connection), in a thread, while the block lasts."""

    def __init__(self, talk):
        self.talk, self.n, self.open = talk, 0, []
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.peer = "ARCHIVE@127.0.0.1:%d" % self.listening.getsockname()[1]
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        while True:
            try:
                connection, _ = self.listening.accept()
            except OSError:
                return
            self.n += 1
            self.open.append(connection)
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        try:
            self.talk(connection)
        except OSError:
            pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listening.close()
        for connection in self.open:
            connection.close()


def silent(connection):
    while connection.recv(65536):
        pass


def garbage(connection):
    connection.recv(65536)
    while True:
        connection.sendall(os.urandom(4096))


def endless_pdu(connection):
    """An A-ASSOCIATE-AC that says it has 4 GB, and goes on for as long as it is read."""
    connection.recv(65536)
    connection.sendall(struct.pack(">BBI", 2, 0, 0xfffffff0))
    while True:
        connection.sendall(bytes(65536))


def item(kind, data):
    return struct.pack(">BBH", kind, 0, len(data)) + data


def accept(connection):
    """Agrees to all that is proposed, in implicit order."""
    head = connection.recv(6, socket.MSG_WAITALL)
    asked = connection.recv(struct.unpack(">I", head[2:])[0], socket.MSG_WAITALL)
    at, items = 68, item(0x10, b"1.2.840.10008.3.1.1.1")
    while at < len(asked):
        kind, n = asked[at], struct.unpack(">H", asked[at + 2:at + 4])[0]
        if kind == 0x20:
            items += item(0x21, asked[at + 4:at + 5] + bytes(3) + item(0x40, b"1.2.840.10008.1.2"))
        at += 4 + n
    items += item(0x50, item(0x51, struct.pack(">I", 16384)) + item(0x52, b"1.2.3"))
    body = asked[:68] + items
    connection.sendall(struct.pack(">BBI", 2, 0, len(body)) + body)


def endless_command(connection):
    """Fragments of an answer of which none is the last."""
    accept(connection)
    connection.recv(65536)
    part = struct.pack("<HHI", 0x0000, 0x0902, 16000 - 8) + bytes(16000 - 8)
    pdu = struct.pack(">IBB", len(part) + 2, 1, 1) + part
    while True:
        connection.sendall(struct.pack(">BBI", 4, 0, len(pdu)) + pdu)


HOSTILE = silent, garbage, endless_pdu, endless_command


def left(word):
    """Processes whose command line has the word."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            line = open(f"/proc/{pid}/cmdline", "rb").read()
        except OSError:
            continue
        if word.encode() in line and int(pid) != os.getpid():
            found.append(line)
    return found
