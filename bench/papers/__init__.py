"""The figures and tables of five papers: what they state (TOML files), what Millpond has beside, plots and the page of both."""
