"""How jobs run: threads and processes."""
