"""Commands on a client's own connection: names, tracking, transactions, channels."""
