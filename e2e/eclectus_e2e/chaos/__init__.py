"""The whole system in one seeded process: the real programs, a simulated API server, network and clock."""
