"""The log doctor: what is wrong with a log, found before anything is solved, and how to put it right."""
