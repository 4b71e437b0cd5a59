"""The service of a trial: decisions over HTTP, with keys, limits and a log that has nothing personal."""

from kerneltrail.trial.service.app import create_app, openapi, openapi_text
from kerneltrail.trial.service.limits import CallLimits
from kerneltrail.trial.service.logs import write_log
from kerneltrail.trial.service.server import LOCAL, address_of, in_thread, listening, server_for

__all__ = [
    "LOCAL",
    "CallLimits",
    "address_of",
    "create_app",
    "in_thread",
    "listening",
    "openapi",
    "openapi_text",
    "server_for",
    "write_log",
]
