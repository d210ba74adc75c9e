"""A whole Slurm cluster on this host for a test: munged, slurmctld and one slurmd, in a folder of
its own, with ports, key and socket of its own; nothing outside the folder is read or written, no
service manager is asked, and no process is left behind."""
import contextlib, ctypes, os, secrets, shutil, signal, socket, subprocess, time
from octtest import *

PROGRAMS = "munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel", "sinfo"

CONF = """ClusterName=octd
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ctl_port}
SlurmdPort={slurmd_port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
PlugStackConfig={folder}/plugstack.conf
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SchedulerType=sched/builtin
SchedulerParameters=sched_interval=1,sched_min_interval=0
ReturnToService=2
MailProg=/bin/true
KillWait=2
MinJobAge=300
NodeName=n0 NodeHostname={host} NodeAddr=127.0.0.1 Port={slurmd_port} CPUs={cpus} State=UNKNOWN
PartitionName=main Nodes=n0 Default=YES MaxTime=INFINITE State=UP
"""


def environment(folder):
    """Of daemons and clients: PATH also has the folders of daemons, which a user's may lack."""
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin:/usr/local/sbin"
    return dict(os.environ, SLURM_CONF=os.path.join(folder, "slurm.conf"), PATH=path)


class Slurm:
    def __init__(self, folder, cpus=2):
        self.folder, self.cpus = folder, cpus
        self.environment = environment(folder)
        self.daemons = []

    # ---- starting ----

    def start(self):
        for name in PROGRAMS:
            if not shutil.which(name, path=self.environment["PATH"]):
                raise Skip(f"{name} is not installed (make setup)")
        if os.geteuid() != 0:
            raise Skip("slurmd starts jobs as root alone")
        self.adopt_orphans()
        os.makedirs(os.path.join(self.folder, "state"))
        os.makedirs(os.path.join(self.folder, "spool"))
        self.write_files()
        self.start_munged()
        self.spawn("slurmctld", "-D", "-i", "-f", self.environment["SLURM_CONF"])
        self.spawn("slurmd", "-D", "-N", "n0", "-f", self.environment["SLURM_CONF"])
        self.await_true(lambda: self.client("sinfo", "-h", "-o", "%T").strip() == "idle",
                        "slurmd's node to be idle")
        return self

    def write_files(self):
        text = CONF.format(folder=self.folder, host=socket.gethostname(), cpus=self.cpus,
                           user="root", ctl_port=free_port(), slurmd_port=free_port())
        for name, content in ("slurm.conf", text.encode()), ("plugstack.conf", b""), \
                ("munge.key", secrets.token_bytes(128)):
            path = os.path.join(self.folder, name)
            with open(path, "wb") as file:
                os.fchmod(file.fileno(), 0o600 if name == "munge.key" else 0o644)
                file.write(content)

    def start_munged(self):
        at = lambda name: f"{self.folder}/munge.{name}"
        self.spawn("munged", "--foreground", "--force", "--socket=" + at("socket"),
                   "--key-file=" + at("key"), "--pid-file=" + at("pid"),
                   "--seed-file=" + at("seed"), "--log-file=" + at("log"), "--num-threads=2")
        self.await_true(lambda: os.path.exists(at("socket")), "munged's socket")

    def spawn(self, name, *arguments):
        """Where a daemon cannot start at all the machine, not octd, is at fault."""
        log = open(os.path.join(self.folder, name + ".log"), "wb")
        path = shutil.which(name, path=self.environment["PATH"])
        self.daemons.append((name, subprocess.Popen([path, *arguments], env=self.environment,
                                                    stdin=subprocess.DEVNULL, stdout=log,
                                                    stderr=subprocess.STDOUT, cwd=self.folder,
                                                    start_new_session=True)))
        log.close()

    def await_true(self, true, what):
        end = time.monotonic() + PATIENCE_S
        while not true():
            for name, process in self.daemons:
                if process.poll() is not None:
                    log = open(os.path.join(self.folder, name + ".log")).read()
                    raise Skip(f"{name} cannot run here: {' '.join(log.split())[-300:]}")
            assert time.monotonic() < end, f"waited in vain for {what}\n" + self.logs()
            time.sleep(0.05)

    def logs(self):
        return "\n".join(f"{name}: " + open(os.path.join(self.folder, name + ".log")).read()[-2000:]
                         for name, _ in self.daemons)

    # ---- using ----

    def client(self, *arguments, status=0):
        """A program of Slurm's; what it printed."""
        done = subprocess.run(arguments, env=self.environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=PATIENCE_S)
        return done.stdout.decode() if done.returncode == status else ""

    def queue(self):
        """{"12_3": "RUNNING"}"""
        lines = self.client("squeue", "-h", "-r", "-o", "%i %T").splitlines()
        return dict(line.split() for line in lines)

    def await_end(self):
        """Until no task waits or runs."""
        def idle():
            shown = subprocess.run(["squeue", "-h"], env=self.environment, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, timeout=PATIENCE_S)
            return shown.returncode == 0 and not shown.stdout.strip()
        until(idle, "the end of all jobs")

    # ---- stopping ----

    @staticmethod
    def adopt_orphans():
        """slurmd starts each job's slurmstepd as an orphan; from now on they are this process's."""
        PR_SET_CHILD_SUBREAPER = 36
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)

    @staticmethod
    def children():
        found = []
        for task in os.listdir("/proc/self/task"):
            with contextlib.suppress(OSError):
                found += open(f"/proc/self/task/{task}/children").read().split()
        return [int(pid) for pid in found]

    def stop(self):
        if any(name == "slurmd" for name, _ in self.daemons):
            subprocess.run(["scancel", "--full", "--signal=KILL", "--user=root"],
                           env=self.environment, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL, timeout=PATIENCE_S)
        for name, process in reversed(self.daemons):
            process.terminate()
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.daemons = []
        while left := self.children():  # slurmstepd, and what a job started
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, 0)


@contextlib.contextmanager
def slurm(name, cpus=2):
    # A socket's path has 107 bytes at most; munged wants a folder that others cannot write.
    base = folder(name)
    shutil.rmtree(base)
    os.makedirs(base, mode=0o755)
    cluster = Slurm(base, cpus)
    try:
        yield cluster.start()
    finally:
        cluster.stop()
