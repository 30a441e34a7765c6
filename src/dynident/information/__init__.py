"""The square-root information factor: accumulate, merge, save, solve."""
