"""What touches a disk: files written whole, digests of values and code, containers of arrays, caches, documents."""
