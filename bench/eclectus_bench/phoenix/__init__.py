"""`make phoenix`: what constraints cost under each policy, as docs/results/phoenix.md."""
