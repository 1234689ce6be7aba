"""The scheduler on a cluster: watches, outbox, election, probes. The only place that does I/O."""
