"""Reports of a comparison: tables, plots and the HTML page."""
