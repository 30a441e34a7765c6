"""The papers by command."""
