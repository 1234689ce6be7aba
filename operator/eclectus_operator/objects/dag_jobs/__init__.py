"""The objects of DagJobs: task pods as observed and as created, events, sets of task numbers. Pure."""
