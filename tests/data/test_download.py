"""Downloads, from a local server that can misbehave; local copies; zips. Nothing here needs the network."""

import contextlib
import gzip
import hashlib
import http.server
import io
import os
import struct
import threading
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from paramagnet.data import datasets, download
from paramagnet.data.datasets import load_dataset
from paramagnet.data.download import DownloadError, cache_folder, find_local, is_cached, read_source_file
from paramagnet.data.sources import SOURCES, RemoteFile, Source, SourceFile

POOCH = "pooch is not installed"
LOCAL = os.environ.get("PARAMAGNET_DATA")


class Server:
    """Serves ``files``; treats each request as the next of ``moods`` says, well when none are left."""

    def __init__(self):
        self.files, self.moods, self.requests = {}, [], []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                outer.requests.append(self.path)
                content = outer.files.get(self.path.rsplit("/", 1)[-1])
                mood = outer.moods.pop(0) if outer.moods else "well"
                if mood == "dropped":
                    self.close_connection = True
                    return
                if mood == "missing" or content is None:
                    self.send_error(404)
                    return
                if mood == "broken":
                    self.send_error(503)
                    return
                if mood == "wrong":
                    content = content[:-1] + bytes([content[-1] ^ 1])
                self.send_response(200)
                if mood != "short":
                    self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content[: len(content) // 2] if mood in ("truncated", "short") else content)

            def log_message(self, *_):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def close(self):
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def server(monkeypatch):
    pytest.importorskip("pooch", reason=POOCH)
    monkeypatch.setenv("NO_PROXY", "*")
    with contextlib.closing(Server()) as running:
        yield running


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.delenv("PARAMAGNET_DATA", raising=False)
    folder = tmp_path / "cache"
    monkeypatch.setattr(download, "cache_folder", lambda: folder)
    return folder


def sha256(content):
    return hashlib.sha256(content).hexdigest()


def zipped(members):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return stream.getvalue()


def files_in(folder):
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


TABLE = b"class,a,b\n" + b"".join(b"u ,%d,%d\nv ,%d,%d\n" % (i, 9 - i, i + 20, i) for i in range(10))


def a_set(server, members, *, folder="inner/", mirrors=1, **changes):
    """A set in a zip, offered by ``server``."""
    content = zipped({folder + name: text for name, text in members.items()})
    server.files["set.zip"] = content
    bases = [f"{server.address}/mirror{i}" for i in range(mirrors)]
    remote = RemoteFile("set.zip", sha256(content), tuple(f"{base}/set.zip" for base in bases))
    files = tuple(
        SourceFile(name, sha256(text.replace(b"\r\n", b"\n")), remote, packed=True)
        for name, text in members.items()
    )
    return replace(SOURCES["ulc"], name="set", n_points=20, chosen=15, files=files, **changes)


def fetch(source, **options):
    return [read_source_file(source, file, **options) for file in source.files]


# Failures


@pytest.mark.parametrize(
    ("mood", "words"),
    [
        ("wrong", "not the one expected .wrong sha256."),
        ("truncated", "closed before the end of the file"),
        ("short", "not the one expected .wrong sha256."),
        ("missing", "the server answered 404"),
        ("broken", "the server answered 503"),
        ("dropped", "no connection"),
    ],
)
def test_a_failed_download_is_explained_leaves_nothing_and_may_be_repeated(server, cache, mood, words):
    source = a_set(server, {"training.csv": TABLE})
    server.moods = [mood]
    with pytest.raises(
        DownloadError, match=rf"set\.zip could not be downloaded \(http.*{words}.*PARAMAGNET_DATA"
    ) as error:
        fetch(source)
    assert "\n" not in str(error.value)
    assert isinstance(error.value, OSError)
    assert files_in(cache) == []
    assert not is_cached(source)
    assert fetch(source) == [TABLE]
    assert files_in(cache) == ["set.zip"]
    assert is_cached(source)
    assert len(server.requests) == 2
    assert fetch(source) == [TABLE]
    assert len(server.requests) == 2  # from the cache


def test_mirrors_are_tried_in_turn(server, cache):
    source = a_set(server, {"training.csv": TABLE}, mirrors=3)
    server.moods = ["truncated", "missing"]
    assert fetch(source) == [TABLE]
    assert server.requests == [f"/mirror{i}/set.zip" for i in range(3)]
    assert files_in(cache) == ["set.zip"]
    (cache / "set" / "set.zip").unlink()
    server.moods = ["dropped", "wrong", "broken"]
    with pytest.raises(DownloadError, match=r"mirror0.*no connection.*mirror1.*sha256.*mirror2.*503"):
        fetch(source)
    assert files_in(cache) == []


def test_a_server_that_is_not_there(server, cache):
    source = a_set(server, {"training.csv": TABLE})
    server.close()
    with pytest.raises(DownloadError, match="no connection"):
        fetch(source)
    assert files_in(cache) == []
    server.__init__()  # so that the fixture can close it


def test_a_damaged_file_in_the_cache_is_replaced(server, cache):
    source = a_set(server, {"training.csv": TABLE})
    (cache / "set").mkdir(parents=True)
    (cache / "set" / "set.zip").write_bytes(b"half")
    assert fetch(source) == [TABLE]
    assert files_in(cache) == ["set.zip"]


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write everywhere")
def test_a_cache_that_cannot_be_written_is_said(server, cache):
    cache.mkdir()
    cache.chmod(0o500)
    with pytest.raises(PermissionError, match="The cache cannot be written"):
        fetch(a_set(server, {"training.csv": TABLE}))


class Bar:
    def __init__(self):
        self.total, self.seen, self.closed = 0, 0, 0

    def update(self, n_bytes):
        self.seen += n_bytes

    def reset(self):
        self.seen = 0

    def close(self):
        self.closed += 1


def test_the_progress_bar_is_told_and_nothing_else_is_printed(server, cache, capfd):
    source = a_set(server, {"training.csv": TABLE})
    bar = Bar()
    fetch(source, progress=bar)
    assert bar.total == bar.seen == len(server.files["set.zip"])
    assert bar.closed == 1
    assert capfd.readouterr() == ("", "")


def test_downloads_without_pooch_say_what_to_install(monkeypatch, cache):
    monkeypatch.setitem(__import__("sys").modules, "pooch", None)
    monkeypatch.setattr(download, "cache_folder", cache_folder)
    with pytest.raises(ValueError, match=r'Downloads need pooch: pip install "\.\[data\]".*PARAMAGNET_DATA'):
        load_dataset("drybean")
    assert not is_cached(SOURCES["drybean"])


def test_the_cache_is_where_the_system_keeps_caches(monkeypatch, tmp_path):
    pytest.importorskip("pooch", reason=POOCH)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder().name == "paramagnet"


# Zips


@pytest.mark.parametrize(
    "name", ["../training.csv", "a/../../training.csv", "/training.csv", "..\\training.csv"]
)
def test_zips_with_names_that_lead_outside_are_refused_and_nothing_is_written(server, cache, tmp_path, name):
    source = a_set(server, {"training.csv": TABLE})
    content = zipped({name: TABLE, "training.csv": TABLE})
    server.files["set.zip"] = content
    remote = replace(source.files[0].remote, sha256=sha256(content))
    source = replace(source, files=(replace(source.files[0], remote=remote),))
    with pytest.raises(
        ValueError, match=r"set\.zip is not the zip it should be: a member is called .* outside"
    ):
        fetch(source)
    assert files_in(tmp_path) == ["set.zip"]
    assert not Path("/training.csv").exists()


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ({"other.csv": TABLE}, r"set\.zip is not the zip it should be: it has no member training\.csv"),
        ({"training.csv": TABLE + b"1"}, r"training\.csv is not the file it should be: its sha256"),
        (None, r"set\.zip is not the zip it should be"),
    ],
)
def test_zips_with_other_content_are_refused(server, cache, members, words):
    source = a_set(server, {"training.csv": TABLE})
    content = b"PK no zip" if members is None else zipped(members)
    server.files["set.zip"] = content
    remote = replace(source.files[0].remote, sha256=sha256(content))
    with pytest.raises(ValueError, match=words):
        fetch(replace(source, files=(replace(source.files[0], remote=remote),)))


def test_members_that_would_be_huge_are_not_unpacked(server, cache, monkeypatch):
    monkeypatch.setattr(download, "_MAX_MEMBER", 50)
    with pytest.raises(ValueError, match=r"training\.csv would have \d+ bytes"):
        fetch(a_set(server, {"training.csv": TABLE}))


# Whole sets


def test_a_zipped_set_is_downloaded_pooled_and_loaded(server, cache, monkeypatch):
    crlf = TABLE.replace(b"\n", b"\r\n")
    source = a_set(server, {"training.csv": TABLE, "testing.csv": crlf}, n_features=2, n_classes=2)
    monkeypatch.setitem(datasets.SOURCES, "set", source)
    dataset = load_dataset("set", rng=1)
    assert dataset.data.shape == (15, 2)
    assert dataset.held_out.shape == (25, 2)
    assert dataset.class_names == ("u", "v")
    assert len(server.requests) == 1


def images(n):
    pixels = np.random.default_rng(n).integers(0, 256, size=(n, 4, 4), dtype=np.uint8)
    head = struct.pack(">4B3I", 0, 0, 8, 3, n, 4, 4)
    labels = struct.pack(">4BI", 0, 0, 8, 1, n) + bytes(i % 10 for i in range(n))
    return pixels, gzip.compress(head + pixels.tobytes()), gzip.compress(labels)


def test_images_are_downloaded_and_loaded(server, cache, monkeypatch):
    pixels, *contents = images(30)
    names = ("i-idx3-ubyte.gz", "l-idx1-ubyte.gz")
    server.files = dict(zip(names, contents, strict=True))
    files = tuple(
        SourceFile(name, sha256(content), RemoteFile(name, sha256(content), (f"{server.address}/{name}",)))
        for name, content in server.files.items()
    )
    source: Source = replace(
        SOURCES["mnist"], name="tiny", chosen=12, n_features=16, image_shape=(4, 4), files=files
    )
    monkeypatch.setitem(datasets.SOURCES, "tiny", source)
    dataset = load_dataset("tiny", units="bit")
    assert dataset.data.shape == (12, 16)
    chosen = pixels.reshape(30, 16)[dataset.indices]
    assert np.array_equal(dataset.data == 1, chosen > dataset.thresholds[:, None])
    assert np.array_equal(dataset.labels, dataset.indices % 10)


def test_the_real_images_come_through_a_server(server, cache, monkeypatch):
    folder = LOCAL
    source = SOURCES["mnist-test"]
    if not folder or not (Path(folder) / "mnist" / source.files[0].name).exists():
        pytest.skip("no local copy of mnist-test: set PARAMAGNET_DATA")
    server.files = {file.name: find_local(source, file, folder).read_bytes() for file in source.files}
    mirrors = tuple(
        replace(
            file,
            remote=replace(
                file.remote, addresses=(f"{server.address}/a/{file.name}", f"{server.address}/b/{file.name}")
            ),
        )
        for file in source.files
    )
    monkeypatch.setitem(datasets.SOURCES, "mnist-test", replace(source, files=mirrors))
    server.moods = ["truncated"]
    ours = load_dataset("mnist-test", n_points=100)
    assert np.array_equal(ours.data, load_dataset("mnist-test", n_points=100, data_dir=folder).data)
    assert [request[:3] for request in server.requests] == ["/a/", "/b/", "/a/"]
    assert files_in(cache) == sorted(server.files)


# Local copies


def test_local_copies_come_first_and_are_checked(tmp_path, monkeypatch, cache):
    remote = RemoteFile("set.zip", sha256(zipped({"training.csv": TABLE})), ("http://127.0.0.1:9/set.zip",))
    file = SourceFile("training.csv", sha256(TABLE), remote, packed=True)
    source = replace(SOURCES["ulc"], name="set", files=(file,))
    local = tmp_path / "local"
    (local / "set").mkdir(parents=True)
    with pytest.raises(
        FileNotFoundError, match=r"`data_dir` must hold training\.csv or set\.zip.*folder set"
    ):
        read_source_file(source, file, data_dir=local)
    (local / "set.zip").write_bytes(zipped({"training.csv": TABLE}))
    assert read_source_file(source, file, data_dir=local) == TABLE
    (local / "training.csv").write_bytes(TABLE.replace(b"\n", b"\r\n"))
    assert read_source_file(source, file, data_dir=local) == TABLE
    (local / "set" / "training.csv").write_bytes(TABLE)
    monkeypatch.setenv("PARAMAGNET_DATA", str(local))
    assert read_source_file(source, file) == TABLE
    (local / "set" / "training.csv").write_bytes(TABLE + b"\n")
    with pytest.raises(
        ValueError, match=r"training\.csv is not the file it should be: its sha256.*Replace it"
    ):
        read_source_file(source, file)
    (local / "set" / "training.csv").unlink()
    (local / "training.csv").unlink()
    (local / "set.zip").write_bytes(b"no zip")
    with pytest.raises(ValueError, match=r"set\.zip is not the file it should be"):
        read_source_file(source, file)


def test_the_named_sets_have_safe_addresses_and_whole_hashes():
    for source in SOURCES.values():
        for file in source.files:
            assert len(file.sha256) == len(file.remote.sha256) == 64
            assert file.remote.addresses
            for address in file.remote.addresses:
                assert address.startswith("https://")
                assert address.endswith(f"/{file.remote.name}")
            assert "/" not in file.name + file.remote.name
