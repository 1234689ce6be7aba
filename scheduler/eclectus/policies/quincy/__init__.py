"""Quincy: waiting pods are placed together, by a minimum-cost flow.

Isard, Prabhakaran, Currey, Wieder, Talwar, Goldberg, "Quincy: Fair Scheduling for Distributed Computing
Clusters", SOSP 2009; and Gog, Schwarzkopf, Gleave, Watson, Hand, "Firmament: Fast, Centralized Cluster
Scheduling at Scale", OSDI 2016, from which the cost models and their interface are.

    graph.py    the network of a round, as arrays
    place.py    the rounds: what is asked, and what becomes of an answer
    running.py  running pods that a round may end, and which of them an answer ends
    costs/      what it costs to run a pod on a node, and to let it wait: one model a file
"""
