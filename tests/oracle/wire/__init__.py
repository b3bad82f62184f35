"""Replays scripts through a running parameter server."""
