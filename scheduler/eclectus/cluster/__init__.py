"""The nodes of a cluster as arrays, and what pods hold on them, updated row by row."""
