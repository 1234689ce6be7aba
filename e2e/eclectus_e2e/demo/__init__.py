"""`make demo`: experiments that compare Eclectus with kube-scheduler, and what each measured."""
