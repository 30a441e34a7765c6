"""What people look at: terminal tables (and later the HTML report)."""
