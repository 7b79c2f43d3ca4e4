"""From bytes to tables and back: files are opened with bounds, named in every error and written whole or not at all."""
