"""The service of a trial: decisions over HTTP, with keys, limits and a log that has nothing personal."""

from kerneltrail.trial.service.app import create_app, openapi
from kerneltrail.trial.service.limits import Limits
from kerneltrail.trial.service.server import LOCAL, address_of, in_thread, listening, server_for

__all__ = ["LOCAL", "Limits", "address_of", "create_app", "in_thread", "listening", "openapi", "server_for"]
