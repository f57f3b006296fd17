"""Publish a live stream without exposing the people in it."""
