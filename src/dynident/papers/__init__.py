"""The papers' own tables, reproduced beside the printed values."""
