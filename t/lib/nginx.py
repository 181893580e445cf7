# nginx as tests and the demo run it: in a directory of its own, in the
# foreground, watched from its first process to its last.  It knows nothing of
# Kubernetes and needs the standard library alone; what a kube_informer block
# looks like is cluster.py's.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""Runs nginx, and asserts that it left nothing behind."""

import contextlib
import ctypes
import functools
import glob
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time

import ports

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD_DIR = os.environ.get("KUBE_BUILD_DIR") or os.path.join(ROOT, "build", "release")
BUILD = os.environ.get("KUBE_BUILD", "release")
NGINX = (
    os.environ.get("KUBE_NGINX")
    or shutil.which("nginx", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    or "nginx"
)
STREAM_MODULE = "/usr/lib/nginx/modules/ngx_stream_module.so"

# Sanitizers and machines under load are slow; a deadline is never a bar.
PATIENCE = 8 if BUILD in ("asan", "tsan") else 4
WAIT = 15 * PATIENCE
POLL = 0.005

BAD = re.compile(
    r"\[(alert|emerg|crit)\]|Sanitizer|runtime error:|exited on signal"
    r"|cannot be respawned|open socket #\d+ left"
)


# Angie's titles end in the number of the configuration.
WORKER = re.compile(r"(nginx|angie): worker process( #\d+)?")

free_port = ports.free_port

_libc = ctypes.CDLL(None)
PR_SET_PDEATHSIG = 1


def with_parent():
    """
    For preexec_fn: a child that ends when this process does, whatever ends it,
    also where that was before the child could ask for it.
    """
    parent = os.getpid()

    def tie():
        _libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)

    return tie


class Timeout(AssertionError):
    """What was waited for did not come."""


def wait_until(condition, timeout=None, what=None):
    """Calls condition until it returns something true, and returns that."""
    timeout = WAIT if timeout is None else timeout
    deadline = time.monotonic() + timeout
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() >= deadline:
            if callable(what):
                what = what()
            raise Timeout(f"not within {timeout} s: {what or condition}")
        time.sleep(POLL)


def never(condition, seconds, what=None):
    """Asserts that condition stays false for so long: for bounds on rates."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        assert not condition(), what or condition
        time.sleep(POLL)


# Processes


def process_stat(pid):
    """(parent, state, start time) of a process, or None."""
    try:
        with open(f"/proc/{pid}/stat", encoding="latin-1") as f:
            text = f.read()
    except OSError:
        return None
    fields = text[text.rindex(")") + 2 :].split()
    return int(fields[1]), fields[0], int(fields[19])


def _child_pids(parent):
    """
    Pids among which all children are.  Where the kernel lists them not all
    processes need be looked at; it may pass one over while the one before it
    ends (proc(5)), hence twice.
    """
    try:
        found = set()
        for task in 2 * os.listdir(f"/proc/{parent}/task"):
            with open(f"/proc/{parent}/task/{task}/children", encoding="ascii") as f:
                found.update(map(int, f.read().split()))
        return found
    except OSError:
        return {int(path[6:]) for path in glob.glob("/proc/[0-9]*")}


def children(parent):
    """{pid: title} of the living children of a process."""
    found = {}
    for pid in _child_pids(parent):
        stat = process_stat(pid)
        if stat is None or stat[0] != parent or stat[1] == "Z":
            continue
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                found[pid] = f.read().replace(b"\0", b" ").decode("latin-1").strip()
        except OSError:
            pass
    return found


def alive(pid):
    """Whether a process runs (a zombie does not)."""
    stat = process_stat(pid)
    return stat is not None and stat[1] != "Z"


def rss(pid):
    """Resident memory in KiB."""
    with open(f"/proc/{pid}/status", encoding="latin-1") as f:
        for line in f:
            if line.startswith("VmRSS:"):
                return int(line.split()[1])
    return 0


# Configuration


@functools.lru_cache(None)
def configured(nginx):
    """The words that an nginx was configured with."""
    done = subprocess.run([nginx, "-V"], capture_output=True, text=True, timeout=60)
    return done.stderr.partition("configure arguments:")[2].split()


def is_angie():
    """Whether it is Angie."""
    done = subprocess.run([NGINX, "-v"], capture_output=True, text=True, timeout=60)
    return "Angie" in done.stderr


def load_modules(stream=False):
    """
    The load_module lines.  An nginx that has our modules, or stream, linked in
    would refuse to load them once more.
    """
    names = ["ngx_kube_module.so", "ngx_http_kube_module.so"]
    lines = []
    words = configured(NGINX)
    if any(w.startswith("--add-module=") and w.rstrip("/").endswith(ROOT) for w in words):
        return ""
    if stream:
        if "--with-stream" not in words:
            lines.append(f"load_module {STREAM_MODULE};")
        names.append("ngx_stream_kube_module.so")
    lines += [f"load_module {os.path.join(BUILD_DIR, name)};" for name in names]
    return "\n".join(lines) + "\n"


def user_line():
    """nginx must not run as root where it could; nobody is everywhere."""
    if os.geteuid() != 0:
        return ""
    try:
        import grp

        grp.getgrnam("nogroup")
        return "user nobody nogroup;\n"
    except KeyError:
        return "user nobody;\n"


TEMP_PATHS = """
    client_body_temp_path temp_body;
    proxy_temp_path temp_proxy;
    fastcgi_temp_path temp_fastcgi;
    uwsgi_temp_path temp_uwsgi;
    scgi_temp_path temp_scgi;
"""


def full_conf(
    http="",
    main="",
    workers=2,
    connections=256,
    stream=False,
    master=True,
    daemon=False,
    level="info",
):
    """A whole nginx.conf; http is what stands inside http {}, None leaves it out."""
    text = load_modules(stream) + user_line()
    text += f"daemon {'on' if daemon else 'off'};\nmaster_process {'on' if master else 'off'};\n"
    text += f"worker_processes {workers};\npid nginx.pid;\nerror_log error.log {level};\n"
    text += f"events {{\n    worker_connections {connections};\n}}\n{main}\n"
    if http is not None:
        if "access_log" not in http:
            http = "    access_log off;\n" + http
        text += f"http {{\n{TEMP_PATHS}{http}\n}}\n"
    return text


PREFIXES = []


def new_prefix():
    """A directory that nginx's unprivileged processes may enter."""
    prefix = tempfile.mkdtemp(prefix="kube-t-")
    os.chmod(prefix, 0o755)
    # nginx opens the logs that it was configured with before it reads its file
    os.mkdir(os.path.join(prefix, "logs"))
    PREFIXES.append(prefix)
    return prefix


@contextlib.contextmanager
def public_directory():
    """
    A directory that every user may enter.  pytest's own are for one user, and
    each pytest that starts makes them so again.
    """
    with tempfile.TemporaryDirectory(prefix="kube-t-") as path:
        os.chmod(path, 0o755)
        yield pathlib.Path(path)


def nginx_t(conf, files=(), env=None):
    """
    nginx -t on a text; (exit code, what it said).

    files: {name: text} put beside nginx.conf.
    """
    prefix = new_prefix()
    try:
        for name, text in {**dict(files), "nginx.conf": conf}.items():
            with open(os.path.join(prefix, name), "w", encoding="utf-8") as f:
                f.write(text)
        done = subprocess.run(
            [NGINX, "-t", "-p", prefix + "/", "-c", "nginx.conf", "-e", "stderr"],
            capture_output=True,
            timeout=60,
            env=None if env is None else {**os.environ, **env},
        )
        return done.returncode, done.stderr.decode("utf-8", "replace")
    finally:
        shutil.rmtree(prefix, ignore_errors=True)


@functools.lru_cache(None)
def loads(module):
    """Whether this nginx takes a module of Debian's: it refuses one made for another build."""
    conf = f"load_module {module};\npid nginx.pid;\nevents {{}}\n"
    return os.path.exists(module) and nginx_t(conf)[0] == 0


@functools.lru_cache(None)
def keeps_alive():
    """
    Whether it keeps upstream connections unasked, as nginx does from 1.29.7
    on: such a one alone has a way to say no.
    """
    upstream = "upstream u {\nserver 127.0.0.1:1;\nkeepalive 0;\n}\n"
    return nginx_t(full_conf(upstream))[0] == 0


class Nginx:
    """
    One nginx with a master (unless master=False), from start() to stop().

    conf is the whole file; paths in it are relative to the prefix.  env: more
    of the environment.  With "daemon on" (a binary upgrade needs it: nginx
    ignores USR2 while its first parent lives) the master is not our child.
    """

    def __init__(self, conf, prefix=None, env=None):
        self.own_prefix = prefix is None
        self.prefix = prefix or new_prefix()
        self.conf = conf
        self.env = env
        self.process = None
        self.master = None
        self.daemon = False
        self.seen = {}
        self.allowed = []
        self.stopped_at = None
        self.write_conf()

    def path(self, *names):
        """A path below the prefix."""
        return os.path.join(self.prefix, *names)

    def write(self, name, text, mode=0o644):
        """Writes a file below the prefix by rename; returns its path."""
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path + ".new", "wb") as f:
            f.write(text if isinstance(text, bytes) else text.encode())
        os.chmod(path + ".new", mode)
        os.rename(path + ".new", path)
        return path

    def write_conf(self, conf=None):
        """The configuration file; conf None writes the old one again."""
        if conf is not None:
            self.conf = conf
        self.write("nginx.conf", self.conf)

    # Life

    def start(self, wait=True):
        """Starts it; returns self once it has its workers."""
        with open(self.path("stderr.log"), "ab") as stderr:
            self.process = subprocess.Popen(
                [NGINX, "-p", self.prefix + "/", "-c", "nginx.conf", "-e", "error.log"],
                stdin=subprocess.DEVNULL,
                stdout=stderr,
                stderr=stderr,
                env=None if self.env is None else {**os.environ, **self.env},
                start_new_session=True,
                preexec_fn=with_parent(),
            )
        self.daemon = "daemon on;" in self.conf
        if self.daemon:
            assert self.process.wait(WAIT) == 0, self.tail()
            self.master = wait_until(self.read_pid, what="nginx.pid")
        else:
            self.master = self.process.pid
        self.note(self.master)
        if wait:
            wait_until(self._started, what=lambda: f"start of nginx:\n{self.tail()}")
        return self

    def read_pid(self, name="nginx.pid"):
        """The pid in a pid file, or None."""
        text = self._text(name).strip()
        return int(text) if text else None

    def _started(self):
        if not self.daemon and self.process.poll() is not None:
            raise AssertionError(f"nginx ended ({self.process.returncode}):\n{self.tail()}")
        if "master_process off" in self.conf:
            return os.path.exists(self.path("nginx.pid"))
        wanted = re.search(r"worker_processes +(\d+);", self.conf)
        return len(self.workers()) >= (int(wanted[1]) if wanted else 1)

    def note(self, *pids):
        """Remembers processes, to see at the end that they are gone."""
        for pid in pids:
            stat = process_stat(pid)
            if stat is not None:
                self.seen[pid] = stat[2]

    def _running(self):
        """Processes of ours that still run."""
        found = []
        for pid, started in self.seen.items():
            stat = process_stat(pid)
            if stat is not None and stat[1] != "Z" and stat[2] == started:
                found.append(pid)
        return found

    def stop(self, sig=signal.SIGTERM, check=True):
        """Ends it, checks what it leaves, removes the directory."""
        try:
            problems = self._stop(sig)
            if check:
                problems += self.problems()
            assert not problems, "\n".join(problems) + f"\nerror.log ends:\n{self.tail()}"
        finally:
            if self.own_prefix:
                shutil.rmtree(self.prefix, ignore_errors=True)

    def restart(self, sig=signal.SIGTERM, change=None):
        """Ends it, calls change() (may be None), and starts it again."""
        problems = self._stop(sig)
        assert not problems, problems
        if change is not None:
            change()
        return self.start()

    def _stop(self, sig):
        problems = []
        if self.process is None:
            return problems
        wait_until(lambda: not self.young(), what="processes that have begun")
        self.stopped_at = len(self.log())
        for pid in self.masters():
            self.kill(sig, pid)
        try:
            wait_until(lambda: not self._reap(), 20 * PATIENCE, "end of nginx")
        except Timeout:
            left = self._running()
            titles = [f"{p} {children(process_stat(p)[0]).get(p)}" for p in left if alive(p)]
            problems.append(f"processes left over after the stop: {titles}")
            for pid in left:
                self.kill(signal.SIGKILL, pid)
        code = self.process.wait(10)
        if code != 0 and not problems:
            problems.append(f"nginx's exit code is {code}")
        self.process = None
        return problems

    def _reap(self):
        self.process.poll()
        self.family()
        return self._running()

    def problems(self):
        """What no test has announced: bad lines in the log, temporary files."""
        found = []
        for line in self.log().splitlines() + self.stderr().splitlines():
            if BAD.search(line) and not any(a.search(line) for a in self.allowed):
                if not self._was_ending(line):
                    found.append("unannounced: " + line)
        for path in glob.glob(self.path("temp_*", "**"), recursive=True):
            if os.path.isfile(path):
                found.append("left over: " + path)
        return found

    def _was_ending(self, line):
        """
        Whether stop() is why a process was killed: after SIGTERM a master
        gives its processes two seconds, which on a busy machine is too little
        for one that ends.  It must have said that it does.
        """
        killed = re.search(r"process (\d+) exited on signal 9", line)
        if killed is None or self.stopped_at is None:
            return False
        ending = self.log()[self.stopped_at :]
        return line in ending and f"#{killed[1]}: exiting" in ending

    def allow(self, pattern):
        """Announces lines of the log that would fail the test at its end."""
        self.allowed.append(re.compile(pattern))

    # Processes

    def masters(self):
        """Master processes: two during a binary upgrade."""
        found = []
        for pid in list(self.seen):
            stat = process_stat(pid)
            if stat is None or stat[1] == "Z" or stat[2] != self.seen[pid]:
                continue
            if pid == self.master or "master process" in self.title(pid):
                found.append(pid)
        return found

    @staticmethod
    def title(pid):
        """The title nginx gave a process."""
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                return f.read().replace(b"\0", b" ").decode("latin-1").strip()
        except OSError:
            return ""

    def young(self):
        """
        Children that have not begun: a signal finds them deaf, and a master
        that stops kills who does not end within a second.
        """
        found = []
        for master in self.masters():
            for pid, title in self.family(master).items():
                if "master process" in title and not children(pid) and alive(pid):
                    found.append(pid)
        return found if alive(self.master) else []

    def family(self, master=None):
        """{pid: title} of the children of a master (default: the current)."""
        found = children(master or self.master)
        self.note(*found)
        for pid, title in list(found.items()):
            if "master process" in title:
                self.note(*children(pid))
        return found

    def workers(self, master=None):
        """Pids of the workers that are not shutting down."""
        return sorted(p for p, t in self.family(master).items() if WORKER.fullmatch(t))

    def old_workers(self, master=None):
        """Pids of those that are."""
        return sorted(p for p, t in self.family(master).items() if "shutting down" in t)

    def informer(self, master=None):
        """Pid of the process that hosts the informer, the last that was started; or None."""
        found = [p for p, t in self.family(master).items() if ": cache manager" in t]
        return max(found, key=lambda pid: (self.seen.get(pid, 0), pid), default=None)

    @contextlib.contextmanager
    def alone(self, worker):
        """What is asked meanwhile this worker answers: the others are stopped."""
        others = [pid for pid in self.workers() if pid != worker]
        try:
            for pid in others:
                self.kill(signal.SIGSTOP, pid)
            wait_until(lambda: all(process_stat(pid)[1] == "T" for pid in others))
            yield
        finally:
            for pid in others:
                self.kill(signal.SIGCONT, pid)

    @staticmethod
    def kill(sig, pid):
        """A signal to one process; it may be gone."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, sig)

    # Control

    def signal(self, sig):
        """A signal to the master."""
        os.kill(self.master, sig)

    def reload(self, conf=None, gone=False):
        """
        Reloads and waits for the completed cycle: new workers that all
        differ from the old; gone: until the old ones have left, too, and the
        old informer.
        """
        if conf is not None:
            self.write_conf(conf)
        before, informer = set(self.workers()), self.informer()
        count = self.count_log("reconfiguring")
        self.signal(signal.SIGHUP)
        wait_until(
            lambda: self.count_log("reconfiguring") > count
            and self.workers()
            and not set(self.workers()) & before
            and not self.young(),
            what=lambda: f"a completed reload:\n{self.tail()}",
        )
        if gone:
            before |= {informer} - {None}
            wait_until(lambda: not any(alive(p) for p in before), what="old processes gone")

    def reload_refused(self, conf, pattern):
        """A reload that must fail and leave everything as it was."""
        good, workers = self.conf, self.workers()
        self.allow(pattern)
        self.write_conf(conf)
        count = self.count_log("reconfiguring")
        self.signal(signal.SIGHUP)
        wait_until(
            lambda: self.count_log("reconfiguring") > count and self.grep_log(pattern),
            what=lambda: f"the refusal:\n{self.tail()}",
        )
        assert self.workers() == workers
        self.write_conf(good)

    def upgrade(self):
        """USR2; returns the new master's pid once it has workers."""
        old = self.master
        before = set(self.family())
        self.signal(signal.SIGUSR2)

        def new_master():
            for pid in set(self.family(old)) - before:
                if self.workers(pid):
                    return pid
            return None

        return wait_until(new_master, what=lambda: f"the new master:\n{self.tail()}")

    def upgraded(self, new):
        """WINCH and QUIT to the old master; the new one is the master then."""
        old, workers = self.master, self.workers()
        self.kill(signal.SIGWINCH, old)
        wait_until(lambda: not any(alive(p) for p in workers), what="old workers gone")
        self.kill(signal.SIGQUIT, old)
        wait_until(lambda: not alive(old), what="old master gone")
        self.master = new
        self.family()

    # Logs

    def _text(self, name):
        try:
            with open(self.path(name), encoding="utf-8", errors="replace") as f:
                return f.read()
        except FileNotFoundError:
            return ""

    def log(self):
        """error.log."""
        return self._text("error.log")

    def stderr(self):
        """What was printed to standard error (sanitizers do)."""
        return self._text("stderr.log")

    def access(self, name="access.log"):
        """access.log, in lines."""
        return self._text(name).splitlines()

    def count_log(self, text):
        """How many lines of error.log hold the text."""
        return sum(text in line for line in self.log().splitlines())

    def grep_log(self, pattern):
        """The lines of error.log that a pattern is found in."""
        wanted = re.compile(pattern)
        return [line for line in self.log().splitlines() if wanted.search(line)]

    def wait_log(self, pattern, count=1, timeout=None):
        """Waits for lines of error.log; returns them."""
        return wait_until(
            lambda: (lambda found: found if len(found) >= count else None)(self.grep_log(pattern)),
            timeout,
            lambda: f"{pattern!r} in error.log:\n{self.tail()}",
        )

    def tail(self, lines=30):
        """The end of both logs, for messages."""
        text = self.log().splitlines()[-lines:] + self.stderr().splitlines()[-lines:]
        return "\n".join(text)
