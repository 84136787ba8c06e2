"""Protocols for everything that actions need from outside."""
