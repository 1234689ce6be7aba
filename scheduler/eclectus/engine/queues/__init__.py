"""The queues in which pending pods wait: class queues, node queues, deferrals and back-off."""
