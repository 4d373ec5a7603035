"""The project that ``dpaudit init`` makes."""
