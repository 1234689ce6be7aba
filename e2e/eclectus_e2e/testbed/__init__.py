"""The test bed: a control plane built here, kind, or an existing cluster; with fake or real nodes."""
