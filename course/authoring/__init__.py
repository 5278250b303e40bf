"""For those who write: notebooks made from texts, lines quoted, minutes counted, outputs compared."""
