"""Users and cohorts: tables in, scaling, loaders of public data, simulators."""

from kerneltrail.data.user import User

__all__ = ["User"]
