# A network namespace of a test's own, in which each pod address is local.
#
# It is made and deleted with ip(8), and nothing outside it is touched: the
# routes and the drop rules end with it.  Needs root.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause

import ctypes
import itertools
import os
import signal
import subprocess
import time

PODS = "10.244.0.0/16"
CLONE_NEWNET = 0x40000000
PREFIX = "ktb"

_serial = itertools.count()
_libc = ctypes.CDLL(None, use_errno=True)


class NetNSError(Exception):
    """A namespace cannot be made or entered here; says why."""


def _run(*args, stdin=None):
    done = subprocess.run(args, input=stdin, text=True, capture_output=True)
    if done.returncode:
        raise NetNSError("%s: %s" % (" ".join(args), done.stderr.strip()))
    return done.stdout


def _setns(path):
    with open(path, "rb") as f:
        if _libc.setns(f.fileno(), CLONE_NEWNET):
            err = ctypes.get_errno()
            raise NetNSError("setns %s: %s" % (path, os.strerror(err)))


class NetNS:
    """Context manager: the namespace exists between enter and exit.

    lo is up and all of 10.244.0.0/16 is local (AnyIP): whoever binds such an
    address inside has it.  With inside=True the calling thread, and all it
    starts from then on, is in the namespace until the exit.
    """

    def __init__(self, inside=False):
        self.name = "%s-%d-%d" % (PREFIX, os.getpid(), next(_serial))
        self.inside = inside
        self.made = False
        self._home = None

    def __enter__(self):
        remove_stale()
        _run("ip", "netns", "add", self.name)
        self.made = True
        try:
            _run("ip", "-n", self.name, "link", "set", "lo", "up")
            _run("ip", "-n", self.name, "route", "add", "local", PODS,
                 "dev", "lo")
            if self.inside:
                self.enter()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *exc):
        self.close()

    def enter(self):
        """Move the calling thread in; leave() is for the same thread."""
        if self._home is None:
            home = "/proc/self/task/%d/ns/net" % _gettid()
            self._home = os.open(home, os.O_RDONLY | os.O_CLOEXEC)
            _setns("/var/run/netns/" + self.name)

    def leave(self):
        if self._home is not None:
            fd, self._home = self._home, None
            _setns("/proc/self/fd/%d" % fd)
            os.close(fd)

    def command(self, *args):
        """The argument list that runs args inside, from anywhere."""
        return ["ip", "netns", "exec", self.name, *args]

    def run(self, *args, stdin=None):
        """Run args inside; returns what it printed."""
        return _run(*self.command(*args), stdin=stdin)

    def pids(self):
        """Processes inside, but this one."""
        pids = map(int, _run("ip", "netns", "pids", self.name).split())
        return [pid for pid in pids if pid != os.getpid()]

    def drop(self, port, address=None, hook="input"):
        """Lose, silently, each packet to and from a TCP port.

        Existing connections are cut as well.  With an address, only packets
        of that address of the server: who talks to another one goes on.  With
        the hook "output" the sender is told that each packet was dropped, as
        by a firewall of its own.
        """
        to = "ip daddr %s " % address if address else ""
        of = "ip saddr %s " % address if address else ""
        # On one side alone, which is input unless it is said: a packet dropped
        # on output is an error to its sender, and so is not lost silently.
        self.heal()
        self.run("nft", "-f", "-", stdin="""
            table ip testbed {
                chain %s {
                    type filter hook %s priority 0; policy accept;
                    %stcp dport %d counter drop
                    %stcp sport %d counter drop
                }
            }
        """ % (hook, hook, to, port, of, port))

    def dropped(self):
        """Packets dropped since drop(): 0 means that the fault is void."""
        words = self.run("nft", "list", "table", "ip", "testbed").split()
        return sum(int(words[i + 1]) for i, word in enumerate(words)
                   if word == "packets")

    def heal(self):
        """Deliver all packets again."""
        tables = self.run("nft", "list", "tables")
        if "table ip testbed" in tables:
            self.run("nft", "delete", "table", "ip", "testbed")

    def close(self):
        """End what is left inside, and the namespace.

        Returns the command lines of the processes that had to be killed.
        """
        self.leave()
        if not self.made:
            return []
        self.made = False
        left = []
        for pid in self.pids():
            left.append(_command_line(pid))
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        deadline = time.monotonic() + 5
        while self.pids() and time.monotonic() < deadline:
            time.sleep(0.02)
        _run("ip", "netns", "del", self.name)
        return left


def remove_stale():
    """Delete the namespaces of runs that were killed, if nobody is inside."""
    for line in _run("ip", "netns", "list").splitlines():
        name = line.split()[0] if line.split() else ""
        parts = name.split("-")
        if len(parts) != 3 or parts[0] != PREFIX or not parts[1].isdigit():
            continue
        if os.path.exists("/proc/" + parts[1]):
            continue
        try:
            if not _run("ip", "netns", "pids", name).split():
                _run("ip", "netns", "del", name)
        except NetNSError:
            pass                 # another run was faster


def available():
    """None if a namespace can be made here, else the reason."""
    try:
        with NetNS() as ns:
            ns.drop(1)
            ns.heal()
    except (NetNSError, OSError) as e:
        return str(e)
    return None


def _gettid():
    return _libc.gettid()


def _command_line(pid):
    try:
        with open("/proc/%d/cmdline" % pid, "rb") as f:
            return f.read().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return "pid %d" % pid
