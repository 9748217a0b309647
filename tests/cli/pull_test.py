#!/usr/bin/env python3
"""couplet pull from a hub and from URLs that misbehave in every way: status, message, files on disk, requests seen."""

import hashlib
import json
import os
import re
import shutil
import signal
import ssl
import subprocess
import tempfile
import time
import unittest

from hub_server import Hub, git_blob, sha256
from program import DONE, FAILED, INTERRUPTED, PROGRAM, WRONG_USE, Case, Result, environment, main, start
from terminal import Terminal

MODEL = b"GGUF" + bytes(range(256)) * 4000  # 1 MB: several writes
REPO = "hf.co/maker/tiny"
Q4 = f"{REPO}:tiny-Q4_K_M.gguf"
FILES = {"README.md": b"# tiny", "tiny-Q4_K_M.gguf": MODEL, "tiny-Q8_0.gguf": b"GGUF eight", "sub/tiny-Q5_K_M.gguf": b"GGUF five"}
TOKEN = "hf_secret"


class PullCase(Case):
    def setUp(self):
        self.hub = Hub()
        self.addCleanup(self.hub.close)
        self.hub.repositories["maker/tiny"] = dict(FILES)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.home = folder.name
        self.models = os.path.join(folder.name, "models")
        self.env = {"COUPLET_MODELS": self.models, "HF_ENDPOINT": self.hub.url, "HOME": self.home, "HF_TOKEN": "", "HF_HOME": "",
                    "HF_TOKEN_PATH": "", "XDG_CACHE_HOME": "", "no_proxy": "127.0.0.1,127.0.0.2,localhost", "SSL_CERT_FILE": "", "SSL_CERT_DIR": "", "CURL_CA_BUNDLE": ""}

    def pull(self, *arguments, **env):
        return self.done("pull", *arguments, **{**self.env, **env})

    def fails(self, *arguments, status=FAILED, says, **env):
        """It fails in one line; what it said about its tries stands before."""
        result = Result(*run(["pull", *arguments], {**self.env, **env}))
        self.assertEqual(result.status, status, result.err)
        self.one_line(result.err.splitlines(True)[-1])
        self.assertRegex(result.err.splitlines()[-1], says)
        self.assertNotIn(TOKEN, result.err)
        return result

    def path(self, name="tiny-Q4_K_M.gguf", repository="maker/tiny"):
        return os.path.join(self.models, "hf.co", repository, name)

    def files(self):
        return sorted(os.path.relpath(os.path.join(where, file), self.models) for where, _, files in os.walk(self.models) for file in files)

    def holds(self, path, data):
        with open(path, "rb") as file:
            self.assertTrue(file.read() == data, path)
        self.assertEqual(self.left_over(), [])

    def left_over(self):
        return [file for file in self.files() if ".part" in file]

    def ranges(self, part=""):
        return [request.headers.get("Range") for request in self.hub.asked("files", part)]


def run(arguments, env):
    process = start(arguments, **env)
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


class Good(PullCase):
    def test_a_quantization_is_chosen(self):
        result = self.pull(REPO)
        self.holds(self.path(), MODEL)
        self.assertEqual(self.files(), ["hf.co/maker/tiny/tiny-Q4_K_M.gguf", "hf.co/maker/tiny/tiny-Q4_K_M.gguf.verified"])
        last = result.err.splitlines()[-1]
        for word in (Q4 + ": verified", self.path(), sha256(MODEL), "terms: " + self.hub.url + "/maker/tiny"):
            self.assertIn(word, last)
        self.assertEqual(result.out, "")

    def test_ways_to_write_it(self):
        for name, file in (("huggingface.co/maker/tiny:q8_0", "tiny-Q8_0.gguf"), ("hf://maker/tiny:Q5_K_M", "sub/tiny-Q5_K_M.gguf"),
                           (f"{REPO}:sub/tiny-Q5_K_M.gguf", "sub/tiny-Q5_K_M.gguf"), (f"{REPO}@v1.0:Q8_0", None),
                           ("https://huggingface.co/maker/tiny/blob/main/tiny-Q8_0.gguf?download=true", "tiny-Q8_0.gguf")):
            line = self.pull(name, "--json").json()
            repository = "maker/tiny" if file else "maker/tiny@v1.0"
            file = file or "tiny-Q8_0.gguf"
            self.assertEqual((line["name"], line["path"]), (f"hf.co/{repository}:{file}", self.path(file, repository)))
            self.holds(line["path"], FILES[file])
            self.assertEqual(line["files"], [{"file": file, "bytes": len(FILES[file]), "sha256": sha256(FILES[file])}])
        self.assertTrue(self.hub.asked("hub", "/maker/tiny/resolve/v1.0/tiny-Q8_0.gguf"))

    def test_the_second_time_no_file_is_asked_for(self):
        self.pull(REPO)
        before = len(self.hub.asked("files"))
        line = self.pull(REPO, "--json").json()
        self.assertEqual((line["state"], line["received_bytes"]), ("already there", 0))
        os.unlink(self.path() + ".verified")
        self.assertEqual(self.pull(REPO, "--json").json()["state"], "already there")
        self.assertEqual(len(self.hub.asked("files")), before)
        self.assertIn("hf.co/maker/tiny/tiny-Q4_K_M.gguf.verified", self.files())

    def test_a_new_version_and_a_damaged_file_are_fetched(self):
        self.pull(REPO)
        self.hub.repositories["maker/tiny"]["tiny-Q4_K_M.gguf"] = MODEL[::-1]
        self.pull(REPO)
        self.holds(self.path(), MODEL[::-1])
        with open(self.path(), "r+b") as file:
            file.write(b"damage")
        self.pull(REPO)
        self.holds(self.path(), MODEL[::-1])

    def test_listings_in_pages(self):
        self.hub.page = 2
        self.pull(f"{REPO}:Q5_K_M")
        self.assertEqual(len(self.hub.asked("hub", "/tree/main")), 3)

    def test_a_split_model_comes_whole_its_first_part_last(self):
        parts = {f"big-Q4_K_M-0000{i}-of-00003.gguf": b"GGUF %d" % i for i in (1, 2, 3)}
        self.hub.repositories["maker/tiny"] = parts
        line = self.pull(REPO, "--json").json()
        first = "big-Q4_K_M-00001-of-00003.gguf"
        self.assertEqual((line["name"], [file["file"][-8:-5] for file in line["files"]]), (f"{REPO}:{first}", ["003"] * 3))
        self.assertTrue(self.hub.asked("files")[-1].path.endswith(first))
        for name, data in parts.items():
            self.holds(self.path(name), data)
        del parts["big-Q4_K_M-00002-of-00003.gguf"]
        self.fails(REPO, says="expected 3 parts of big-Q4_K_M-00001-of-00003.gguf, there are 2")

    def test_a_hugging_face_folder(self):
        wanted = {"config.json": b"{}", "tokenizer.json": b'{"a": 1}', "model.safetensors.index.json": b"{}", "LICENSE": b"free",
                  "model-00001-of-00002.safetensors": b"one", "model-00002-of-00002.safetensors": b"two", "generation_config.json": b"{}"}
        other = {"README.md": b"", "pytorch_model.bin": b"x", "consolidated.safetensors": b"y", "original/model.safetensors": b"z"}
        self.hub.repositories["maker/folder"] = {**other, **wanted}
        line = self.pull("hf.co/maker/folder", "--json").json()
        folder = self.path("", "maker/folder").rstrip("/")
        self.assertEqual((line["name"], line["path"].rstrip("/")), ("hf.co/maker/folder", folder))
        self.assertEqual(self.files(), sorted(f"hf.co/maker/folder/{f}{s}" for f in wanted for s in ("", ".verified")))
        self.assertIn({"file": "config.json", "bytes": 2, "git_blob": git_blob(b"{}")}, line["files"])
        self.assertEqual(line["files"][-1]["file"], "config.json")
        # A folder that is being changed has no config.json until it is whole again.
        self.hub.repositories["maker/folder"]["model-00002-of-00002.safetensors"] = b"new"
        self.hub.misbehave("/maker/folder/model-00002-of-00002.safetensors", {"status": 500})
        self.fails("hf.co/maker/folder", "--retries", "0", says="answered 500")
        self.assertNotIn("hf.co/maker/folder/config.json", self.files())
        self.pull("hf.co/maker/folder")
        self.holds(os.path.join(folder, "config.json"), b"{}")

    def test_safetensors_beside_gguf(self):
        self.hub.repositories["maker/tiny"].update({"config.json": b"{}", "model.safetensors": b"w"})
        self.assertEqual(self.pull(REPO, "--json").json()["name"], Q4)
        self.pull(f"{REPO}:safetensors")
        self.assertIn("hf.co/maker/tiny/model.safetensors", self.files())

    def test_a_url(self):
        self.hub.plain["/deep/tiny.gguf"] = MODEL
        url = self.hub.files_url + "/deep/tiny.gguf"
        result = self.pull(url + "?key=1#x", HF_TOKEN=TOKEN)
        path = os.path.join(self.models, url.replace("://", "/"))
        self.holds(path, MODEL)
        self.assertIn(f"{url}: verified: {path} (1.0 MB, sha256 {sha256(MODEL)})", result.err)
        self.assertEqual([r.path for r in self.hub.asked("files")], ["/deep/tiny.gguf?key=1"])
        self.assertNotIn("Authorization", self.hub.requests[0].headers)
        self.assertEqual(self.pull(url, "--sha256", sha256(MODEL), "--json").json()["state"], "already there")
        self.assertEqual(len(self.hub.requests), 1)

    def test_quiet_and_piped(self):
        self.assertEqual(self.pull(REPO, "--quiet").err, "")
        self.assertNotIn("\r", self.pull(f"{REPO}:Q8_0").err)

    def test_a_bar_on_a_terminal_only_where_it_may(self):
        for arguments, env, drawn in (((), {}, True), ((), {"NO_COLOR": "1"}, False), (("--json",), {}, False), (("--quiet",), {}, False)):
            shutil.rmtree(self.models, ignore_errors=True)
            terminal = Terminal("pull", REPO, *arguments, **{**self.env, **env})
            self.assertEqual(terminal.status(), DONE, terminal.text())
            self.assertEqual(bool(re.search(r"\[[# ]+\] .* of 1.0 MB", terminal.text())), drawn, terminal.text())


class Tokens(PullCase):
    def sent(self, host):
        return {request.headers.get("Authorization") for request in self.hub.asked(host)}

    def test_only_the_hub_sees_it(self):
        self.hub.token = TOKEN
        self.pull(REPO, HF_TOKEN=TOKEN)
        self.assertEqual((self.sent("hub"), self.sent("files")), ({f"Bearer {TOKEN}"}, {None}))

    def test_not_even_the_same_host_by_another_name(self):
        self.hub.token = TOKEN
        self.hub.misbehave("/maker/tiny/resolve/main/tiny-Q4_K_M.gguf",
                           {"location": self.hub.files_url.replace("127.0.0.1", "127.0.0.2") + "/maker/tiny/tiny-Q4_K_M.gguf"},
                           {"location": self.hub.url.replace("127.0.0.1", "localhost") + "/elsewhere/a/b"})
        self.fails(REPO, "--retries", "0", says="127.0.0.2", HF_TOKEN=TOKEN)  # nobody listens there
        self.fails(REPO, "--retries", "0", says="answered 404|no such file", HF_TOKEN=TOKEN)
        seen = {request.path: request.headers.get("Authorization") for request in self.hub.requests}
        self.assertIsNone(seen["/elsewhere/a/b"])

    def test_a_redirect_on_the_hub_keeps_it(self):
        self.hub.token = TOKEN
        self.hub.repositories["maker/new"] = dict(FILES)
        self.hub.misbehave("/api/models/maker/tiny/tree/main", {"status": 307, "headers": {
            "Location": "/api/models/maker/new/tree/main?recursive=true"}})
        self.pull(REPO, HF_TOKEN=TOKEN)
        self.assertEqual(self.sent("hub"), {f"Bearer {TOKEN}"})

    def test_where_it_comes_from(self):
        self.hub.token = TOKEN
        for folder, env in ((".cache/huggingface", {}), ("hf", {"HF_HOME": os.path.join(self.home, "hf")}), ("hf", {"HF_HOME": "~/hf"}),
                            ("xdg/huggingface", {"XDG_CACHE_HOME": os.path.join(self.home, "xdg")}),
                            ("other", {"HF_TOKEN_PATH": os.path.join(self.home, "other", "token")})):
            os.makedirs(os.path.join(self.home, folder), exist_ok=True)
            path = os.path.join(self.home, folder, "token")
            with open(path, "w") as file:
                file.write(TOKEN + "\n")
            self.hub.requests.clear()
            self.pull(REPO, **env)
            self.assertEqual(self.sent("hub"), {f"Bearer {TOKEN}"}, env)
            os.unlink(path)
        self.hub.requests.clear()
        self.pull(REPO)
        self.assertEqual(self.sent("hub"), {None})

    def test_one_that_could_break_the_request_is_refused(self):
        self.fails(REPO, status=WRONG_USE, says="HF_TOKEN: expected a token of printable", HF_TOKEN="a\r\nX-Evil: 1")
        self.assertEqual(self.hub.requests, [])

    def test_refusals_say_what_to_do(self):
        self.hub.token = TOKEN
        self.hub.gated.add("maker/tiny")
        terms = f"accept the terms at {self.hub.url}/maker/tiny and set HF_TOKEN"
        self.fails(REPO, says=terms)
        self.fails(REPO, says="not granted: " + terms, HF_TOKEN=TOKEN)
        self.fails(REPO, says="refused the token of HF_TOKEN", HF_TOKEN="hf_old")
        self.fails("hf.co/maker/none", says="no such repository, or it isn't public.*set HF_TOKEN")
        self.fails("hf.co/maker/none", says="no such repository", HF_TOKEN=TOKEN)
        self.assertEqual(self.files(), [])


class Missing(PullCase):
    def test_files_and_revisions(self):
        self.fails(f"{REPO}@v9", says='no revision "v9"')
        self.fails(f"{REPO}:Q2_K", says='quantization "Q2_K", there is sub/tiny-Q5_K_M.gguf, tiny-Q4_K_M.gguf, tiny-Q8_0.gguf')
        self.hub.repositories["maker/tiny"] = {"a-f16.gguf": b"GGUF", "b-f16.gguf": b"GGUF", "mmproj-f16.gguf": b"GGUF"}
        self.fails(REPO, says="expected :FILE that says which, there are a-f16.gguf, b-f16.gguf$")
        self.hub.repositories["maker/tiny"] = {"README.md": b""}
        self.fails(REPO, says="expected a GGUF file, or config.json and model.safetensors, the repository has neither")
        self.fails(self.hub.files_url + "/none.gguf", says="none.gguf: expected the file, the server answered 404")
        self.assertEqual(self.files(), [])

    def test_names_that_are_none(self):
        for name, says in (("hf.co/maker", "expected hf.co/OWNER/NAME"), ("hf.co/../x", "OWNER/NAME"), ("hf.co/a/..", "OWNER/NAME"),
                           ("hf.co/a/b/c", "OWNER/NAME"), (f"{REPO}:", "behind the colon"), (f"{REPO}:../x.gguf", "behind the colon"),
                           (f"{REPO}:/etc/x.gguf", "behind the colon"), (f"{REPO}@../x", "OWNER/NAME"), ("http://h/x.bin", r"PATH.gguf"),
                           ("http://h/../x.gguf", "no empty and no hidden"), ("http://h//x.gguf", "no empty"), ("https://u:p@h/x.gguf", "password"),
                           ("http://h/a b.gguf", "printable"), ("http://h/a\nb.gguf", "printable"), ("https://huggingface.co/a/b/raw/main/x.gguf", "a link")):
            self.fails(name, status=WRONG_USE, says=says)
        self.fails("ftp://h/x.gguf", says="nor is it hf.co")
        for arguments in ((REPO,), (self.hub.files_url + "/a.gguf", self.hub.files_url + "/b.gguf"), ("smollm2",)):
            self.fails(*arguments, "--sha256", "0" * 64, status=WRONG_USE, says="--sha256: expected one URL")
        self.fails(REPO, "--sha256", "xyz", status=WRONG_USE, says="64 lower-case")
        self.fails(REPO, status=WRONG_USE, says="HF_ENDPOINT", HF_ENDPOINT="file:///etc")
        self.assertEqual((self.hub.requests, self.files()), ([], []))

    def test_a_proxy_from_the_environment(self):
        self.fails(REPO, says="no such repository", HF_ENDPOINT="http://hub.invalid", http_proxy=self.hub.files_url, no_proxy="")
        self.assertEqual([request.path for request in self.hub.asked("files")],
                         ["http://hub.invalid/api/models/maker/tiny/tree/main?recursive=true"])

    def test_only_pulls_need_the_libraries(self):
        for library in ("libcurl.so.4", "libcrypto.so.3"):
            with open(os.path.join(self.home, library), "w") as file:
                file.write("not a library")
            self.fails(REPO, says=r"needs libcurl.so.4 \(Debian: apt-get install libcurl4\)", LD_LIBRARY_PATH=self.home)
            self.done("list", LD_LIBRARY_PATH=self.home, **self.env)

    def test_nobody_there(self):
        self.fails(REPO, says="connect", HF_ENDPOINT="http://127.0.0.1:1")  # at once: no server was ever reached


class Broken(PullCase):
    """What the network does to a download."""

    FILE = "/maker/tiny/tiny-Q4_K_M.gguf"

    def test_a_cut_connection_goes_on_where_it_was(self):
        self.hub.misbehave(self.FILE, {"cut": 300_000}, {"cut": 200_000})
        result = self.pull(REPO)
        self.holds(self.path(), MODEL)
        self.assertEqual(self.ranges()[0], None)
        begins = [int(text.removeprefix("bytes=").removesuffix("-")) for text in self.ranges()[1:]]
        self.assertEqual(begins, [300_000, 500_000])
        self.assertIn("trying again in 0.5 s", result.err)

    def test_the_next_pull_goes_on(self):
        self.hub.misbehave(self.FILE, {"cut": 300_000})
        self.fails(REPO, "--retries", "0", says="hub|127.0.0.1")
        self.assertEqual(self.files(), ["hf.co/maker/tiny/tiny-Q4_K_M.gguf.part", "hf.co/maker/tiny/tiny-Q4_K_M.gguf.part.state"])
        self.assertEqual(os.path.getsize(self.path() + ".part"), 300_000)
        self.assertEqual(self.pull(REPO, "--json").json()["received_bytes"], len(MODEL) - 300_000)
        self.holds(self.path(), MODEL)
        self.assertEqual(self.ranges(), [None, "bytes=300000-"])

    def begun(self, data=MODEL, size=300_000):
        """A part as a pull leaves it."""
        self.hub.misbehave(self.FILE, {"cut": size, "data": data, "etag": f'"{hashlib.md5(MODEL).hexdigest()}"'})
        self.fails(REPO, "--retries", "0", says=".")
        self.hub.requests.clear()

    def test_a_part_of_another_version_is_not_used(self):
        self.begun()
        self.hub.repositories["maker/tiny"]["tiny-Q4_K_M.gguf"] = MODEL[::-1]
        self.pull(REPO)
        self.holds(self.path(), MODEL[::-1])
        self.assertEqual(self.ranges(), [None])

    def test_a_server_that_changed_its_mind_is_asked_anew(self):
        self.begun()
        self.hub.misbehave(self.FILE, {"etag": '"another"'})  # so If-Range doesn't hold: 200
        self.pull(REPO)
        self.holds(self.path(), MODEL)
        self.assertEqual(self.ranges(), ["bytes=300000-"])

    def test_servers_without_ranges(self):
        self.begun()
        self.hub.misbehave(self.FILE, {"ranges": False})
        self.pull(REPO)
        self.holds(self.path(), MODEL)

    def test_wrong_ranges(self):
        for fault in ({"range": f"bytes 0-99/{len(MODEL)}"}, {"range": "bytes 300000-9/10"}, {"range": "nonsense"}, {"status": 416}):
            self.begun()
            self.hub.misbehave(self.FILE, fault)
            self.pull(REPO)
            self.holds(self.path(), MODEL)
            self.assertEqual(self.ranges(), ["bytes=300000-", None], fault)
            os.unlink(self.path())

    def test_a_damaged_part_is_found_out(self):
        self.begun(data=MODEL[::-1])
        self.fails(REPO, says="was removed: expected sha256 " + sha256(MODEL))
        self.assertEqual(self.files(), [])
        self.pull(REPO)
        self.holds(self.path(), MODEL)

    def test_a_whole_part_is_only_verified(self):
        self.begun()
        with open(self.path() + ".part", "ab") as file:
            file.write(MODEL[300_000:])
        self.pull(REPO)
        self.holds(self.path(), MODEL)
        self.assertEqual(self.ranges(), [])

    def test_a_part_without_its_state_begins_anew(self):
        for state in ("", "[" * 9, "{}", '{"url": 1, "bytes": -1, "digest": "", "etag": ""}'):
            self.begun()
            with open(self.path() + ".part.state", "w") as file:
                file.write(state)
            self.pull(REPO)
            self.holds(self.path(), MODEL)
            self.assertEqual(self.ranges(), [None])
            os.unlink(self.path())

    def test_wrong_content(self):
        self.hub.misbehave(self.FILE, {"data": MODEL[:-1] + b"x"})
        self.fails(REPO, says=f"what came is not the file and was removed: expected sha256 {sha256(MODEL)}, got [0-9a-f]{{64}}")
        self.assertEqual(self.files(), [])

    def test_wrong_sizes(self):
        self.hub.misbehave(self.FILE, {"data": MODEL + b"more"})
        self.fails(REPO, says=f"expected {len(MODEL)} bytes, the server announces {len(MODEL) + 4}")
        self.hub.misbehave(self.FILE, {"length": len(MODEL) - 1})
        self.fails(REPO, says="announces")
        self.hub.misbehave(self.FILE, {"length": len(MODEL), "data": MODEL[:1000]})  # it promises more than it sends
        self.pull(REPO)
        self.holds(self.path(), MODEL)
        self.assertEqual(self.ranges()[-1], "bytes=1000-")

    def test_a_body_without_end(self):
        self.hub.misbehave(self.FILE, {"chunked": True, "extra": b"x" * 65536})
        self.fails(REPO, says=f"expected {len(MODEL)} bytes, the server sends more")
        self.assertLessEqual(sum(os.path.getsize(os.path.join(self.models, f)) for f in self.files()), len(MODEL) + 1000)

    def test_a_size_from_the_listing_is_enough(self):
        self.hub.misbehave(self.FILE, {"chunked": True})
        self.pull(REPO)
        self.holds(self.path(), MODEL)

    def test_a_stalled_connection(self):
        self.hub.misbehave(self.FILE, {"stall": 300_000})
        self.pull(REPO, "--timeout", "1")
        self.holds(self.path(), MODEL)
        self.assertEqual(self.ranges(), [None, "bytes=300000-"])

    def test_busy_servers(self):
        self.hub.misbehave("/api/models/maker/tiny/tree/main", {"status": 429, "headers": {"Retry-After": "1"}}, {"status": 503})
        self.hub.misbehave(self.FILE, {"status": 500}, {"status": 502})
        begin = time.monotonic()
        result = self.pull(REPO)
        self.assertGreaterEqual(time.monotonic() - begin, 1)
        self.assertIn("answered 429; trying again in 1.0 s", result.err)
        self.holds(self.path(), MODEL)

    def test_servers_that_stay_busy(self):
        self.hub.misbehave(self.FILE, *[{"status": 503}] * 3)
        self.fails(REPO, "--retries", "2", says=r"answered 503 \(tried 3 times\)")
        self.hub.misbehave(self.FILE, {"status": 429, "headers": {"Retry-After": "86400"}})
        self.fails(REPO, says="answered 429, and asks to wait 86400 s: try again later")
        self.assertEqual((len(self.hub.asked("files")), self.files()), (4, []))

    def test_a_server_that_begins_again_and_again(self):
        self.hub.misbehave(self.FILE, *[{"cut": 300_000, "etag": f'"{i}"'} for i in range(9)])
        self.fails(REPO, "--retries", "2", says=r"tried 3 times")
        self.assertEqual(self.ranges(), [None] + ["bytes=300000-"] * 2)

    def test_redirects_that_lead_nowhere(self):
        path = "/maker/tiny/resolve/main/tiny-Q4_K_M.gguf"
        self.hub.misbehave(path, *[{"location": path}] * 20)
        self.fails(REPO, says="at most 10 redirects")
        self.hub.faults.clear()
        self.hub.misbehave(path, {"location": "file:///etc/passwd"})
        self.fails(REPO, says="expected a redirect to an http or https URL|file")
        self.assertEqual(self.files(), [])

    def test_a_repository_that_changes_meanwhile(self):
        self.hub.misbehave("/maker/tiny/resolve/main/tiny-Q4_K_M.gguf", {"linked": "0" * 64})
        self.fails(REPO, says="changed meanwhile: pull again")
        self.assertEqual(self.files(), [])

    def test_content_codings(self):
        self.hub.misbehave(self.FILE, {"headers": {"Content-Encoding": "gzip"}})
        self.fails(REPO, says="the server sends it as gzip")


class Urls(PullCase):
    def setUp(self):
        super().setUp()
        self.hub.plain["/m.gguf"] = MODEL
        self.url = self.hub.files_url + "/m.gguf"
        self.file = os.path.join(self.models, self.url.replace("://", "/"))

    def test_sha256(self):
        self.fails(self.url, "--sha256", "0" * 64, says=f"was removed: expected sha256 {'0' * 64}, got {sha256(MODEL)}")
        self.assertEqual(self.files(), [])
        self.pull(self.url, "--sha256", sha256(MODEL))
        self.holds(self.file, MODEL)

    def test_without_a_hash_only_an_etag_lets_it_go_on(self):
        for etag, begins in (('"one"', "bytes=300000-"), ('W/"weak"', None), ("", None)):
            self.hub.misbehave("/m.gguf", {"cut": 300_000, "etag": etag}, {"etag": etag})
            self.fails(self.url, "--retries", "0", says="127.0.0.1")
            self.hub.requests.clear()
            self.pull(self.url)
            self.assertEqual(self.ranges(), [begins])
            if begins:
                self.assertEqual(self.hub.requests[0].headers["If-Range"], etag)
            self.holds(self.file, MODEL)
            os.unlink(self.file)

    def test_what_is_no_model(self):
        self.hub.plain["/m.gguf"] = b"<html>log in</html>"
        self.fails(self.url, says='was removed: expected "GGUF" at its beginning')
        self.hub.plain["/m.gguf"] = MODEL
        self.hub.misbehave("/m.gguf", {"chunked": True})
        self.fails(self.url, says="expected a Content-Length")
        self.hub.misbehave("/m.gguf", {"length": 1 << 60})
        self.fails(self.url, says="expected at most 17592186044416 bytes")
        self.hub.misbehave("/m.gguf", {"length": 1 << 43})
        self.fails(self.url, says="no space left: 8796 GB are needed")
        self.assertEqual(self.files(), [])


class Hostile(PullCase):
    def lists(self, *entries, raw=None):
        self.hub.listings["maker/tiny"] = raw if raw is not None else json.dumps(entries).encode()

    def entry(self, path="x.gguf", **more):
        return {"type": "file", "path": path, "size": 4, "oid": "0" * 40, "lfs": {"oid": sha256(b"GGUF"), "size": 4, **more}}

    def test_names(self):
        for path in ("../x.gguf", "/x.gguf", "a/../../x.gguf", "a//x.gguf", "./x.gguf", ".x.gguf", "a\\..\\x.gguf", "x\n.gguf", "x\x1b[31m.gguf",
                     "a" * 300 + ".gguf", "a/" * 600 + "x.gguf", "x\u202e.gguf", "\ud800.gguf"):
            self.lists(self.entry(path))
            self.fails(REPO, says="the hub's list of files: expected")
            self.assertEqual(self.files(), [])
        self.assertEqual(os.listdir(self.home), ["models"] if os.path.exists(self.models) else [])

    def test_values(self):
        for more, says in (({"size": -1}, "a size"), ({"size": 1 << 45}, "a size"), ({"size": 1e9}, "a size"), ({"size": "4"}, "a size"),
                           ({"size": None}, "a size"), ({"size": 1 << 63}, "a size"), ({"oid": "../x"}, "a sha256"), ({"oid": "A" * 64}, "a sha256"),
                           ({"oid": 5}, "a sha256")):
            self.lists(self.entry(**more))
            self.fails(REPO, says="expected " + says)
        self.lists(self.entry(size=1 << 43))
        self.fails(REPO, says="no space left: 8796 GB are needed")
        self.assertEqual((self.hub.asked("hub", "resolve"), self.files()), ([], []))

    def test_texts(self):
        for raw, says in ((b"", "JSON"), (b"<html>", "JSON"), (b"{}", "a JSON list"), (b"[" * 100_000, "levels"), (b"null", "a JSON list"),
                          (b'[{"type": "file", "path": "\xff.gguf"}]', "JSON"), (b"[1e999]", "JSON|GGUF"), (b"[1, null, [], {}]", "a GGUF file")):
            self.lists(raw=raw)
            self.fails(REPO, says=says)
        self.lists(raw=b" " * (33 << 20))
        self.fails(REPO, says="at most 33554432 bytes")

    def test_next_pages_elsewhere(self):
        self.hub.misbehave("/api/models/maker/tiny/tree/main", {"status": 200, "headers": {"Link": f'<{self.hub.files_url}/x>; rel="next"'}})
        self.fails(REPO, says="its next page at", HF_TOKEN=TOKEN)
        self.assertEqual(self.hub.asked("files"), [])

    def test_pages_without_end(self):
        self.hub.page = 0
        self.fails(REPO, says="at most 100000 files")

    def test_endless_headers(self):
        self.hub.misbehave("/maker/tiny/tiny-Q4_K_M.gguf", {"headers": {f"X-{i}": "y" * 8000 for i in range(100)}})
        self.fails(REPO, says="at most 262144 bytes of headers")


class Disk(PullCase):
    def test_a_limit_on_files(self):
        limited = f"ulimit -f 300; exec {PROGRAM} pull {REPO} --quiet"
        result = subprocess.run(["bash", "-c", limited], capture_output=True, text=True, check=False, env=environment(**self.env))
        self.assertEqual(result.returncode, FAILED, result.stderr)
        self.one_line(result.stderr)
        self.assertRegex(result.stderr, "no space left .*what came is kept")
        self.assertGreater(os.path.getsize(self.path() + ".part"), 0)
        self.pull(REPO)
        self.holds(self.path(), MODEL)

    def test_folders_that_cannot_be(self):
        with open(self.models, "w"):
            pass
        self.fails(REPO, says=re.escape(self.models))
        os.unlink(self.models)
        os.makedirs(self.path())  # a folder stands where the file should
        self.fails(REPO, says="directory")


class Processes(PullCase):
    FILE = Broken.FILE

    def wait_for(self, condition):
        deadline = time.monotonic() + 60
        while not condition():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.02)

    def stalled(self, *arguments):
        """A pull that has 300,000 bytes and waits for more."""
        self.hub.misbehave(self.FILE, {"stall": 300_000})
        process = start(["pull", REPO, *arguments], **self.env)
        self.addCleanup(process.kill)
        self.wait_for(lambda: os.path.exists(self.path() + ".part") and os.path.getsize(self.path() + ".part") == 300_000)
        return process

    def test_two_at_once_fetch_once(self):
        first = self.stalled()
        second = start(["pull", REPO], **self.env)
        self.wait_for(lambda: len(self.hub.asked("hub", "tree")) == 2)
        time.sleep(0.5)
        self.hub.go_on.set()
        for process, says in ((first, "verified"), (second, "already there")):
            _, err = process.communicate(timeout=60)
            self.assertEqual(process.returncode, DONE, err)
            self.assertIn(says, err.decode())
        self.assertIn("waiting for another pull", err.decode())
        self.assertEqual(len(self.hub.asked("files")), 1)
        self.holds(self.path(), MODEL)

    def test_ctrl_c_keeps_the_part(self):
        process = self.stalled()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, INTERRUPTED)
        self.assertIn("interrupted; the next pull goes on", err.decode())
        self.assertEqual(os.path.getsize(self.path() + ".part"), 300_000)
        self.pull(REPO)
        self.assertEqual(self.ranges(), [None, "bytes=300000-"])
        self.holds(self.path(), MODEL)

    def test_killed_the_next_goes_on(self):
        process = self.stalled()
        process.kill()
        process.communicate()
        self.pull(REPO)
        self.assertEqual(self.ranges(), [None, "bytes=300000-"])
        self.holds(self.path(), MODEL)

    def test_ctrl_c_while_waiting(self):
        self.hub.misbehave("/api/models/maker/tiny/tree/main", {"status": 429, "headers": {"Retry-After": "200"}})
        process = start(["pull", REPO], **self.env)
        self.wait_for(lambda: self.hub.requests)
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, INTERRUPTED)

    def test_rm_leaves_a_running_pull_alone(self):
        process = self.stalled()
        self.refused(FAILED, "rm", REPO, says="another process is pulling it", **self.env)
        self.hub.go_on.set()
        process.communicate(timeout=60)
        self.holds(self.path(), MODEL)


class Tls(PullCase):
    def setUp(self):
        super().setUp()
        self.certificate = os.path.join(self.home, "certificate.pem")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=couplet test", "-addext",
                        "subjectAltName=IP:127.0.0.1", "-keyout", self.certificate + ".key", "-out", self.certificate], check=True, capture_output=True)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, self.certificate + ".key")
        self.secure = Hub(tls=context)
        self.addCleanup(self.secure.close)
        self.secure.repositories = self.hub.repositories
        self.env["HF_ENDPOINT"] = self.secure.url

    def test_known_and_unknown_certificates(self):
        self.fails(REPO, "--retries", "0", says="certificate")
        self.assertEqual(self.secure.requests, [])
        self.pull(REPO, SSL_CERT_FILE=self.certificate)
        self.holds(self.path(), MODEL)

    def test_never_from_https_to_http(self):
        self.secure.misbehave("/maker/tiny/resolve/main/tiny-Q4_K_M.gguf", {"location": self.hub.files_url + Broken.FILE})
        self.fails(REPO, says="expected a redirect to https, got one to http:", SSL_CERT_FILE=self.certificate)
        self.assertEqual(self.hub.requests, [])


if __name__ == "__main__":
    main(())
