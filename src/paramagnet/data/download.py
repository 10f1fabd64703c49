"""The files of named data sets: from a local folder, from the cache, or from the network.

Every file is checked by its hash, wherever it comes from. Zips are never unpacked to the disk: only the
wanted member is read, so that hostile names in a zip have no effect.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import logging
import os
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from paramagnet._extras import how_to_install
from paramagnet.data.sources import RemoteFile, Source, SourceFile

ENVIRONMENT = "PARAMAGNET_DATA"

_TIMEOUT = 30.0  # seconds without a byte
_MAX_MEMBER = 1 << 28  # bytes; the largest member we know has 4 million

PathLike = str | os.PathLike[str]


class DownloadError(OSError):
    """None of the addresses of a file delivered it."""


def read_source_file(
    source: Source, file: SourceFile, *, data_dir: PathLike | None = None, progress: Any = None
) -> bytes:
    """The content of a file of a data set.

    A folder given as ``data_dir`` must have it; the folder that the environment variable PARAMAGNET_DATA
    names may. Otherwise it comes from the cache, after a download if necessary. ``progress`` is a progress
    bar with pooch's interface.
    """
    found = find_local(source, file, data_dir)
    if found is None:
        found = download(file.remote, cache_folder() / source.folder, progress=progress)
        return _read_member(found, file) if file.packed else found.read_bytes()
    if found.name == file.name:
        return _verified(found.read_bytes(), file.sha256, found)
    content = _verified(found.read_bytes(), file.remote.sha256, found)
    return _read_member(found, file, content)


def find_local(source: Source, file: SourceFile, data_dir: PathLike | None) -> Path | None:
    """The local copy of a file or of the zip that holds it, in the folder or in its subfolder for the set."""
    folder = data_dir if data_dir is not None else os.environ.get(ENVIRONMENT) or None
    if folder is None:
        return None
    places = [Path(folder) / source.folder, Path(folder)]
    names = [file.name, file.remote.name]
    found = next((place / name for place in places for name in names if (place / name).is_file()), None)
    if found is None and data_dir is not None:
        raise FileNotFoundError(
            f"`data_dir` must hold {' or '.join(dict.fromkeys(names))}, as it is or in a folder "
            f"{places[0].name}: {folder}."
        )
    return found


def cache_folder() -> Path:
    """The folder for downloads, in the cache folder of the operating system."""
    return Path(_import_pooch().os_cache("paramagnet"))


def is_cached(source: Source) -> bool:
    """Whether all files of a set have been downloaded before."""
    try:
        folder = cache_folder() / source.folder
    except ValueError:
        return False
    return all((folder / file.remote.name).is_file() for file in source.files)


def download(remote: RemoteFile, folder: Path, *, progress: Any = None) -> Path:
    """The path of a file in ``folder``, downloaded unless it is there already with the right hash.

    The addresses are tried in turn. What arrives goes to a temporary file first and gets its name only if the
    hash is right; on failure nothing is left behind.
    """
    pooch = _import_pooch()
    failures = []
    for address in remote.addresses:
        downloader = pooch.HTTPDownloader(
            progressbar=progress or False,
            timeout=_TIMEOUT,
            headers={"Accept-Encoding": "identity"},  # else requests unpacks gzipped files
        )
        try:
            with _quiet(pooch.get_logger()):
                known = f"sha256:{remote.sha256}"
                return Path(pooch.retrieve(address, known, remote.name, folder, downloader=downloader))
        except PermissionError as error:
            raise PermissionError(f"The cache cannot be written: {folder} ({error.strerror}).") from None
        except (OSError, ValueError) as error:  # requests' errors are OSErrors, pooch's ValueErrors
            failures.append(f"{address}: {_reason(error)}")
    raise DownloadError(
        f"{remote.name} could not be downloaded ({'; '.join(failures)}). Try again later, or put the file "
        f"into a folder and name that by {ENVIRONMENT} or `data_dir`."
    )


def _import_pooch() -> Any:
    try:
        import pooch
    except ImportError:
        raise ValueError(
            f"Downloads need pooch: {how_to_install('data')}. Or name a folder with the files by "
            f"{ENVIRONMENT} or `data_dir`."
        ) from None
    return pooch


def _reason(error: Exception) -> str:
    """The reason of a failed download, in a few words."""
    response = getattr(error, "response", None)
    if response is not None:
        return f"the server answered {response.status_code} {response.reason}"
    if isinstance(error, ValueError) and "hash" in str(error):
        return "the file that came is not the one expected (wrong sha256)"
    kind = type(error).__name__
    if kind == "ChunkedEncodingError":
        return "the connection was closed before the end of the file"
    if "Timeout" in kind:
        return f"no answer for {_TIMEOUT:g} s"
    if kind in ("ConnectionError", "SSLError", "ProxyError"):
        return f"no connection ({kind})"
    return str(error).splitlines()[0] if str(error) else kind


@contextlib.contextmanager
def _quiet(logger: logging.Logger) -> Iterator[None]:
    """Keep pooch from reporting every download on stderr."""
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(level)


def _verified(content: bytes, sha256: str, where: Path) -> bytes:
    """``content`` if its hash is right; the line ends of text may be CRLF."""
    for candidate in (content, content.replace(b"\r\n", b"\n")):
        if hashlib.sha256(candidate).hexdigest() == sha256:
            return candidate
    raise ValueError(
        f"{where} is not the file it should be: its sha256 is {hashlib.sha256(content).hexdigest()[:8]}..., "
        f"expected {sha256[:8]}.... Replace it, or remove it to have it downloaded."
    )


def _read_member(path: Path, file: SourceFile, content: bytes | None = None) -> bytes:
    """The member of a zip whose name, without folders, is that of ``file``."""
    where = path / file.name
    try:
        with zipfile.ZipFile(path if content is None else io.BytesIO(content)) as archive:
            for member in archive.infolist():
                name = PurePosixPath(member.filename.replace("\\", "/"))
                if name.is_absolute() or ".." in name.parts:
                    raise ValueError(f"a member is called {member.filename!r}, which leads outside")
                if name.name == file.name and not member.is_dir():
                    if member.file_size > _MAX_MEMBER:
                        raise ValueError(f"{file.name} would have {member.file_size} bytes")
                    return _verified(archive.read(member), file.sha256, where)
            raise ValueError(f"it has no member {file.name}")
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError, ValueError) as error:
        if str(where) in str(error):
            raise
        raise ValueError(f"{path} is not the zip it should be: {error}.") from None
