"""The command line and the pipelines behind it."""
