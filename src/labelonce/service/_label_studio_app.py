"""What Label Studio asks of a machine-learning backend, below a path that only it knows."""

import hmac
from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends, HTTPException

from labelonce.service._label_studio_bridge import Bridge

_Sent = Annotated[dict[str, Any], Body()]
_MOST_TASKS = 10_000  # in one request: more would keep everybody else waiting


def label_studio_routes(bridge: Bridge) -> APIRouter:
    """Return the routes of the backend. Everything is answered at once; work is done afterwards."""

    async def knows_the_secret(secret: str) -> None:
        if not hmac.compare_digest(secret.encode(), bridge.secret.encode()):
            raise HTTPException(404, "Not Found")

    known = [Depends(knows_the_secret)]
    routes = APIRouter(prefix="/label-studio/{secret}", dependencies=known, include_in_schema=False)

    @routes.get("/health")
    @routes.get("/")
    async def health() -> dict[str, str]:
        return {"status": "UP", "model_class": "labelonce"}

    @routes.post("/setup")
    async def setup(body: _Sent) -> dict[str, str]:  # noqa: ARG001  # the project is the one that we serve
        return {"model_version": bridge.version}

    @routes.get("/versions")
    async def versions() -> dict[str, list[str]]:
        return {"versions": [bridge.version]}

    @routes.post("/predict")
    async def predict(body: _Sent) -> dict[str, Any]:
        tasks = body.get("tasks")
        if not isinstance(tasks, list) or len(tasks) > _MOST_TASKS:
            raise HTTPException(422, f"tasks must be a list of at most {_MOST_TASKS}")
        return {"results": bridge.predictions(tasks)}

    @routes.post("/webhook")
    async def webhook(body: _Sent) -> dict[str, str]:
        bridge.note(body)
        return {"status": "ok"}

    @routes.post("/train")
    async def train(body: _Sent) -> dict[str, str]:  # noqa: ARG001  # the labels come by webhook
        bridge.note({"action": "START_TRAINING"})
        return {"status": "ok"}

    return routes
