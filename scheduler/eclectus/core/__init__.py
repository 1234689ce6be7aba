"""The decision core: events in, commands out. No socket, no clock, no thread, no chance of its own."""
