from .effective_size import bulk_ess, pareto_k, sizes

__all__ = ["bulk_ess", "pareto_k", "sizes"]
