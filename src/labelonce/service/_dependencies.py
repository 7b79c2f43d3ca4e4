"""The worker and the service of a request: what its handlers depend on."""

from typing import Annotated

from fastapi import Depends, Request

from labelonce.service._service import RequestError, Service
from labelonce.service._tokens import Person


async def service_of(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


Running = Annotated[Service, Depends(service_of)]


async def person_of(request: Request, service: Running) -> Person:
    """Return the identity that the token in the header stands for."""
    kind, _, token = request.headers.get("authorization", "").partition(" ")
    address = request.client.host if request.client else ""
    return await service.person(token if kind.lower() == "bearer" else None, address)


Anybody = Annotated[Person, Depends(person_of)]


async def worker_of(person: Anybody) -> str:
    """Return the name of the worker who is asking."""
    if person.is_admin:
        rule = "tasks must be asked for with a worker's token"
        raise RequestError(403, f"{rule}; got an admin's. Add a worker for yourself.")
    return person.worker


async def admin_of(person: Anybody) -> None:
    """Refuse everybody but admins."""
    if not person.is_admin:
        raise RequestError(403, "this must be asked with the admin's token; got a worker's.")


Worker = Annotated[str, Depends(worker_of)]
