"""The joint over paths of compositions, and the moves and chains that sample it."""
