"""Asks TensorFlow and writes down its answers."""
