"""The part of Label Studio's HTTP interface that is used here."""

import json
import urllib.error
import urllib.parse
import urllib.request
from typing import Any

from labelonce._messages import show
from labelonce.service._secrets import without_secrets

_SECONDS = 120
_BATCH = 200
_TAB = "Most uncertain first (labelonce)"


class LabelStudio:
    """A project on a Label Studio.

    Parameters
    ----------
    url : str
    token : str
        A personal access token, which is exchanged for one that lasts minutes whenever that is over, or a legacy token.
    project : int
    """

    def __init__(self, url: str, token: str, project: int) -> None:
        if not url.startswith(("http://", "https://")):
            raise ValueError(f"the URL of Label Studio must begin with http:// or https://; got {url!r}.")
        self.url, self.project = url.rstrip("/"), project
        self._token = token
        self._access = ""

    def config(self) -> str:
        """Return the labelling interface."""
        return str(self.call("GET", f"/api/projects/{self.project}")["label_config"])

    def tasks(self) -> list[dict[str, Any]]:
        """Return all tasks with their annotations, those that were cancelled included."""
        path = f"/api/projects/{self.project}/export?exportType=JSON&download_all_tasks=true"
        found: list[dict[str, Any]] = self.call("GET", path)
        return found

    def set_overlap(self, task: int, overlap: int, *, labelled: bool) -> None:
        """Say how many people are to label a task, and whether that is done."""
        self.call("PATCH", f"/api/tasks/{task}", {"overlap": overlap, "is_labeled": labelled})

    def add_predictions(self, predictions: list[dict[str, Any]], version: str) -> None:
        """Add predictions, and show these from now on."""
        for start in range(0, len(predictions), _BATCH):
            path = f"/api/projects/{self.project}/import/predictions"
            self.call("POST", path, predictions[start : start + _BATCH])
        self.call("PATCH", f"/api/projects/{self.project}", {"model_version": version})

    def connect(self, url: str) -> None:
        """Make us the model of the project, unless we are; Label Studio then sends its webhooks to us."""
        if not any(one.get("url") == url for one in self.call("GET", f"/api/ml?project={self.project}")):
            self.call("POST", "/api/ml", {"url": url, "project": self.project, "title": "labelonce"})

    def add_tab(self) -> None:
        """Add a tab of the Data Manager in which the most uncertain tasks are first, unless it is there."""
        tabs = self.call("GET", f"/api/dm/views?project={self.project}")
        if any((one.get("data") or {}).get("title") == _TAB for one in tabs):
            return
        data = {"title": _TAB, "type": "list", "target": "tasks", "ordering": ["tasks:predictions_score"]}
        item = {"filter": "filter:tasks:completed_at", "operator": "empty", "type": "Datetime", "value": "true"}
        filters = {"conjunction": "and", "items": [item]}
        self.call("POST", "/api/dm/views", {"project": self.project, "data": data | {"filters": filters}})

    def content(self, path: str) -> bytes:
        """Return a file that a task names: an upload of its own, or one anywhere on the web."""
        if path.startswith(("http://", "https://")):
            with urllib.request.urlopen(path, timeout=_SECONDS) as answer:
                return bytes(answer.read())
        if not path.startswith("/"):  # "@example.com" behind our URL would be another server
            raise ValueError(f"a file of a task must be named by a path or by http(s)://...; got {show(path)}.")
        return self._asked("GET", path, None)

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """Return the JSON that a request is answered with."""
        content = self._asked(method, path, body)
        return json.loads(content) if content else None

    def _asked(self, method: str, path: str, body: Any) -> bytes:
        try:
            return self._send(method, path, body)
        except urllib.error.HTTPError as error:
            if error.code == 401 and _is_personal(self._token):  # the short-lived one is over
                error.close()
                self._access = ""
                return self._send(method, path, body)
            said = without_secrets(error.read()[:300].decode(errors="replace"))
            raise OSError(f"Label Studio must take {method} {path}; it answered {error.code}: {said}") from error
        except urllib.error.URLError as error:
            said = without_secrets(str(error.reason))
            raise OSError(f"Label Studio must answer at its URL; got: {said}. Start it, or check the URL.") from error

    def _send(self, method: str, path: str, body: Any) -> bytes:
        if _is_personal(self._token) and not self._access and path != "/api/token/refresh":
            found = self._plain("POST", "/api/token/refresh", {"refresh": self._token}, {})
            self._access = json.loads(found)["access"]
        said = f"Bearer {self._access}" if self._access else f"Token {self._token}"
        return self._plain(method, path, body, {"Authorization": said})

    def _plain(self, method: str, path: str, body: Any, headers: dict[str, str]) -> bytes:
        data = None if body is None else json.dumps(body).encode()
        headers = headers | {"Content-Type": "application/json"}
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        with _OPENER.open(request, timeout=_SECONDS) as answer:
            return bytes(answer.read())


class _KeepToOneServer(urllib.request.HTTPRedirectHandler):
    """Follows redirects, such as that of an upload to where files are stored, but takes the token nowhere else."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        """Return the request to the new address."""
        found = super().redirect_request(req, fp, code, msg, headers, newurl)
        if found is not None and urllib.parse.urlsplit(newurl)[:2] != urllib.parse.urlsplit(req.full_url)[:2]:
            found.remove_header("Authorization")
        return found


_OPENER = urllib.request.build_opener(_KeepToOneServer)


def _is_personal(token: str) -> bool:
    """Return whether a token is a personal one: a JSON web token, of three parts."""
    return token.count(".") == 2
