from .effective_size import bulk_ess, sizes

__all__ = ["bulk_ess", "sizes"]
