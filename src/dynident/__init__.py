"""dynident."""
