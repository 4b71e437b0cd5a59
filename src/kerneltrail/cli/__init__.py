"""The command line: one module per command. Commands import the library when they run, so ``--help`` is quick."""
