"""A stand-in for the Hugging Face Hub on 127.0.0.1: datasets and models, over real HTTP.

It keeps repositories in memory and answers what `push_to_hub`, `load_dataset` and dataset cards ask
for: create, preupload, LFS upload, commit, tree, paths-info, resolve with ranges.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

REPO = r"(?P<repo>[^/]+/[^/]+)"
LARGE = (".parquet", ".arrow")


def blob_id(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


class FakeHub:
    """Repositories by name, each a mapping from path to bytes; `with FakeHub() as hub:`."""

    def __init__(self):
        self.repos, self.uploads, self.requests = {}, {}, []
        handler = type("Handler", (_Handler,), {"hub": self})
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def commit_id(self, repo):
        files = sorted((path, blob_id(data)) for path, data in self.repos[repo].items())
        return hashlib.sha1(json.dumps(files).encode()).hexdigest()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: FakeHub

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.route("GET")

    def do_HEAD(self):
        self.route("HEAD")

    def do_POST(self):
        self.route("POST")

    def do_PUT(self):
        self.route("PUT")

    def route(self, method):
        parts = urlsplit(self.path)
        path, self.query = unquote(parts.path), parse_qs(parts.query)
        self.hub.requests.append((method, path))
        self.raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        for methods, pattern, answer in ROUTES:
            match = re.fullmatch(pattern, path)
            if match and method in methods:
                repo = match.groupdict().get("repo")
                if repo is not None and repo not in self.hub.repos:
                    return self.missing("RepoNotFound")
                return answer(self, **match.groupdict())
        return self.missing("RepoNotFound")

    def send(self, code, body=b"", headers=None):
        if not isinstance(body, bytes):
            body, headers = (
                json.dumps(body).encode(),
                {"Content-Type": "application/json", **(headers or {})},
            )
        self.send_response(code)
        for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def missing(self, what):
        self.send(404, {"error": what}, {"X-Error-Code": what, "X-Error-Message": what})

    def whoami(self):
        token = {"role": "write"}
        self.send(
            200,
            {
                "name": "me",
                "type": "user",
                "orgs": [],
                "auth": {"type": "access_token", "accessToken": token},
            },
        )

    def create(self):
        asked = json.loads(self.raw)
        repo = f"{asked.get('organization') or 'me'}/{asked['name']}"
        known = repo in self.hub.repos
        self.hub.repos.setdefault(repo, {".gitattributes": b""})
        self.send(
            409 if known else 200,
            {"url": f"{self.hub.url}/datasets/{repo}", "name": repo, "id": repo},
        )

    def valid_yaml(self):
        self.send(200, {"errors": [], "warnings": []})

    def lfs_batch(self, prefix):
        objects = []
        for asked in json.loads(self.raw)["objects"]:
            upload = {"upload": {"href": f"{self.hub.url}/lfs/{asked['oid']}"}}
            actions = {} if asked["oid"] in self.hub.uploads else {"actions": upload}
            objects.append({**asked, "authenticated": True, **actions})
        self.send(
            200,
            {"transfer": "basic", "objects": objects},
            {"Content-Type": "application/vnd.git-lfs+json"},
        )

    def lfs_put(self, oid):
        self.hub.uploads[oid] = self.raw
        self.send(200)

    def preupload(self, repo, revision):
        files = [
            {
                "path": f["path"],
                "uploadMode": "lfs" if f["path"].endswith(LARGE) else "regular",
                "shouldIgnore": False,
                "oid": None,
            }
            for f in json.loads(self.raw)["files"]
        ]
        self.send(200, {"files": files})

    def commit(self, repo, revision):
        files = self.hub.repos[repo]
        for line in self.raw.splitlines():
            entry = json.loads(line)
            value = entry["value"]
            if entry["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif entry["key"] == "lfsFile":
                files[value["path"]] = self.hub.uploads[value["oid"]]
            elif entry["key"] == "deletedFile":
                files.pop(value["path"], None)
        done = self.hub.commit_id(repo)
        self.send(
            200,
            {
                "success": True,
                "commitOid": done,
                "commitUrl": f"{self.hub.url}/datasets/{repo}/commit/{done}",
            },
        )

    def info(self, repo, revision=None):
        names = [{"rfilename": path} for path in self.hub.repos[repo]]
        stamp = "2026-01-01T00:00:00.000Z"
        self.send(200, {
            "id": repo, "_id": "0", "author": repo.split("/")[0], "sha": self.hub.commit_id(repo), "private": False,
            "gated": False, "disabled": False, "downloads": 0, "likes": 0, "tags": [], "lastModified": stamp,
            "createdAt": stamp, "siblings": names, "cardData": {},
        })  # fmt: skip

    def refs(self, repo):
        main = {"name": "main", "ref": "refs/heads/main", "targetCommit": self.hub.commit_id(repo)}
        self.send(200, {"branches": [main], "tags": [], "converts": []})

    def entry(self, repo, path):
        data = self.hub.repos[repo][path]
        return {"type": "file", "path": path, "size": len(data), "oid": blob_id(data)}

    def tree(self, repo, revision, folder=None):
        prefix = f"{folder.strip('/')}/" if folder else ""
        deep = self.query.get("recursive", ["false"])[0].lower() in ("true", "1")
        files, folders = [], set()
        for path in sorted(self.hub.repos[repo]):
            rest = path.removeprefix(prefix)
            if not path.startswith(prefix):
                continue
            parents = rest.split("/")[:-1]
            folders |= {
                prefix + "/".join(parents[: n + 1]) for n in range(len(parents)) if deep or n == 0
            }
            if deep or not parents:
                files.append(self.entry(repo, path))
        found = [
            {"type": "directory", "path": f, "size": 0, "oid": "0" * 40} for f in sorted(folders)
        ] + files
        return self.send(200, found) if found or not prefix else self.missing("EntryNotFound")

    def paths_info(self, repo, revision):
        json_body = "json" in self.headers.get("Content-Type", "")
        asked = (
            json.loads(self.raw)["paths"]
            if json_body
            else parse_qs(self.raw.decode()).get("paths", [])
        )
        found = []
        for path in [asked] if isinstance(asked, str) else asked:
            if path in self.hub.repos[repo]:
                found.append(self.entry(repo, path))
            elif any(name.startswith(f"{path.strip('/')}/") for name in self.hub.repos[repo]):
                found.append({"type": "directory", "path": path, "size": 0, "oid": "0" * 40})
        self.send(200, found)

    def resolve(self, repo, revision, path):
        data = self.hub.repos[repo].get(path)
        if data is None:
            return self.missing("EntryNotFound")
        headers = {
            "ETag": f'"{blob_id(data)}"', "X-Repo-Commit": self.hub.commit_id(repo), "Accept-Ranges": "bytes",
            "Content-Type": "application/octet-stream",
        }  # fmt: skip
        wanted = re.match(r"bytes=(\d+)-(\d*)", self.headers.get("Range") or "")
        if wanted and self.command == "GET":
            first, last = int(wanted[1]), min(int(wanted[2] or len(data) - 1), len(data) - 1)
            headers["Content-Range"] = f"bytes {first}-{last}/{len(data)}"
            return self.send(206, data[first : last + 1], headers)
        return self.send(200, data, headers)


API = rf"/api/(?:datasets|models)/{REPO}"
ROUTES = [
    (("GET",), "/api/whoami-v2", _Handler.whoami),
    (("POST",), "/api/repos/create", _Handler.create),
    (("POST",), "/api/validate-yaml", _Handler.valid_yaml),
    (("POST",), r"(?P<prefix>.+)\.git/info/lfs/objects/batch", _Handler.lfs_batch),
    (("PUT",), r"/lfs/(?P<oid>\w+)", _Handler.lfs_put),
    (("POST",), rf"{API}/preupload/(?P<revision>.+)", _Handler.preupload),
    (("POST",), rf"{API}/commit/(?P<revision>.+)", _Handler.commit),
    (("POST",), rf"{API}/paths-info/(?P<revision>.+)", _Handler.paths_info),
    (("GET",), rf"{API}/refs", _Handler.refs),
    (("GET",), rf"{API}/tree/(?P<revision>[^/]+)(?:/(?P<folder>.*))?", _Handler.tree),
    (("GET",), rf"{API}(?:/revision/(?P<revision>.+))?", _Handler.info),
    (
        ("GET", "HEAD"),
        rf"(?:/datasets)?/{REPO}/resolve/(?P<revision>[^/]+)/(?P<path>.+)",
        _Handler.resolve,
    ),
]
