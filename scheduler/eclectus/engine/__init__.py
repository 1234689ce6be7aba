"""One scheduling step: event handlers, queues, placement, node queues and explanations."""
