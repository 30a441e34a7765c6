"""Reports: sections built once, rendered as an HTML page and on the terminal; plots and their data."""
