"""Streams, strategies and checks for anonymizers that publish values one by one."""
