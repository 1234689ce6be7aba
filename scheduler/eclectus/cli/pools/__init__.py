"""`eclectus pools`: the tree of Pools, and Pools made of the queues of others."""
