"""How a request gets to its handler: sessions, reasons, the table of commands, the dispatcher."""
