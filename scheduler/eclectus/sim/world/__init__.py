"""The simulated cluster: machines with true speeds, jobs, probes, and what is recorded of them."""
