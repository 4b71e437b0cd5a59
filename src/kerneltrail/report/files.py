"""Files that are never seen half written: the package's own helpers, under the name that reports know."""

from kerneltrail.store.atomic import check_writable, write

__all__ = ["check_writable", "write"]
