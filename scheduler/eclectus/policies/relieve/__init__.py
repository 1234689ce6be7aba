"""Policies that make room for refused tasks."""
