"""The test bed (a control plane with fake or real nodes) and the demo.

Run `python -m eclectus_e2e --help`. Not part of the product: the packages of scheduler and operator
never import this one, so they cannot read the true speeds of the nodes.
"""
