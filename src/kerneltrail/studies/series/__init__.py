"""Methods on single published series, beside published errors."""
