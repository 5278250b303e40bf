"""For those who write: lessons begun, notebooks made from texts, lines quoted, minutes counted, outputs compared."""
