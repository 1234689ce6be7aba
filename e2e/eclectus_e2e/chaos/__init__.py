"""The whole system in one seeded process: real schedulers, a simulated API server, network and clock."""
