"""Gangs are placed whole or not at all: their turn, the transaction around their pods, and its end."""
