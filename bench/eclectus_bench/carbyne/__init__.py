"""`make carbyne`: jobs with stages under each order, as docs/results/carbyne.md."""
